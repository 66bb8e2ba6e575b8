"""The store: every run in one SQLite database on a local disk."""
