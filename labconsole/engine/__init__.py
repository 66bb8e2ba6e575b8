"""The engine: one fresh process per run, its roles, and the transfer of their samples into the store."""
