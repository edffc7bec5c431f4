"""Pause for a person, resume in another process (contract, section 5)."""
