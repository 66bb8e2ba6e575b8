"""The window's page of certificates: its tabs, and what they share."""
