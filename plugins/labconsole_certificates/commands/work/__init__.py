"""What the commands do, theme by theme."""
