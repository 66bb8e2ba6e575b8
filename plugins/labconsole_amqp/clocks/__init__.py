"""Two consoles, one trial: the offset of their clocks, measured over the broker."""
