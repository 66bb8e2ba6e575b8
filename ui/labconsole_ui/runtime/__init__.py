"""Services of the window: queue bridge, background threads, event loop, settings."""
