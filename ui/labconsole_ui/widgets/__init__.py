"""Widgets that all views share: labels, layouts, message bar, secret dialog; texts of status."""
