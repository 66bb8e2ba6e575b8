"""The key pool's pages in the window: the only part of the plugin that knows the UI and Qt."""
