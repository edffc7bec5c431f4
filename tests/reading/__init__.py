"""Reading and writing checkpoints in PostgreSQL: what each action answers, and what it leaves alone."""
