"""Shaped links: rate, delay, jitter, loss and TCP window between the clients of a run and their broker."""
