"""SQLite: a local cache that may be lost at any moment and is never the authority."""
