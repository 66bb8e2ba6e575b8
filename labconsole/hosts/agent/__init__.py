"""The agent of a host: what it runs for consoles, and what it reports."""
