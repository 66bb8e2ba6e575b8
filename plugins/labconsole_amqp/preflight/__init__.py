"""What is checked before a run begins: the checks of each end, as a check list and as verdicts."""
