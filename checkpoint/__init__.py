"""Checkpoints of workflows: PostgreSQL is the authority, SQLite a cache that may be lost at any moment."""

__version__ = "0.1.0"
