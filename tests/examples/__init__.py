"""What the examples promise."""
