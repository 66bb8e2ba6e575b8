"""Agreements on trials with other owners' consoles, in the window: the steps of both ends."""
