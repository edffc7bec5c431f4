"""Bytes that no caller should send, and what the worker owes to each line of them (contract, section 1)."""
