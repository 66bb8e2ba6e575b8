"""The engine: one fresh process per run, its roles, and the way of their samples into the store."""
