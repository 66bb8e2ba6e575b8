"""Results leave the console: CSV."""
