"""What PostgreSQL and the network do to a worker, and what is promised all the same."""
