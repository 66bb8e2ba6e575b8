"""What the window shows of runs: start page, queue, live values, one run, history, comparison, report."""
