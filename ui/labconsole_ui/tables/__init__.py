"""Tables of records: one model with column descriptions, selection, frozen first column."""
