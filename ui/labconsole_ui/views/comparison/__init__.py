"""Selected runs side by side, with plain differences from a baseline."""
