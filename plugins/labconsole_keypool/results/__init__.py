"""What stored samples of a run give, live or simulated: figures, verdicts, curves, the source's tables."""
