"""The life of the embedded PostgreSQL server, held through real processes and signals (contract, section 6)."""
