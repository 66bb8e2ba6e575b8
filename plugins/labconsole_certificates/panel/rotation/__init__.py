"""Rotation in the window: what expires, plans, steps, confirmations."""
