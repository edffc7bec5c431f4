"""What the tests share: one PostgreSQL for a run, the runner as a process, and what every answer is held to."""
