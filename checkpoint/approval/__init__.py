"""Approvals: a report waits for a person, in any process, and is written exactly once (contract, section 5)."""
