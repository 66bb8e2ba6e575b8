"""The arguments of the commands, theme by theme; what runs is in `work`, and imported only then."""
