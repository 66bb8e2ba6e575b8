"""The evidence of a run: sealed when it ends, and checked later."""
