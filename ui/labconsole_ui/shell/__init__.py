"""The window: start-up, menus, docks, pages, navigation, status bar, log."""
