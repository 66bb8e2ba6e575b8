"""Views of runs: start page, queue, live values, one run, history, comparison, report."""
