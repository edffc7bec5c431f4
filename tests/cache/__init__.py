"""The SQLite cache: what it may serve, and that losing it harms nothing."""
