"""The window's page of certificates: its tabs, and their common parts."""
