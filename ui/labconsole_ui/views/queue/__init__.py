"""The run queue: its table, and what can be done to each run."""
