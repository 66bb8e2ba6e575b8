"""What each use case does, on a test bench of stations, receivers and authorities that records all of it."""
