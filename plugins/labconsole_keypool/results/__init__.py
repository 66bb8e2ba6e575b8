"""The results of a run, live or simulated, from its stored samples: figures, verdicts, curves, the source's tables."""
