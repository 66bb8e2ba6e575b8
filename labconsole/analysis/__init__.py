"""Analysis of stored figures: their formats, intervals, comparisons and findings."""
