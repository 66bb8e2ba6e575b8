"""The Qt shell of the lab console: window, forms, queue, plots, history, comparison, theme."""
