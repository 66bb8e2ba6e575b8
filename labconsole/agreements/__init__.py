"""Agreements between the consoles of two owners, as files: a signed scenario, its acceptance, and signed results."""
