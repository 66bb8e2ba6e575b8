"""V2X's page in the window: the only part of the plugin that knows the UI and Qt."""
