"""The runs of two consoles that played the two ends of one trial, merged into one run."""
