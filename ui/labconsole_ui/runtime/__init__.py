"""What the window runs on: queue bridge, background threads, event loop, settings, services."""
