"""The theme of the window: palette, colours by meaning, fonts, icons, style sheet."""
