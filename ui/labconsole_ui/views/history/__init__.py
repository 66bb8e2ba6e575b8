"""The history of all runs: sort, filter, open, delete with undo, notes and tags."""
