"""Runs are launched, reported when they are done, exported, imported, verified and dragged."""
