"""Shaped links: a link of a rate, delay, jitter and loss between the clients of a run and their broker."""
