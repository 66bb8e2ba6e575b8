"""The exchange assistant between two States in the window."""
