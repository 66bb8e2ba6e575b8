"""What plugins build on: the panel of a trial with presets and run bar, and the context of a page."""
