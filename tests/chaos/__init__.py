"""A storm of faults over several workers, and a ledger that knows what must be true all the same."""
