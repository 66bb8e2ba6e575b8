"""One run: parameters, figures, verdicts, plots, events, provenance."""
