"""The run queue: its table and the actions on its runs."""
