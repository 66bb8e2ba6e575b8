"""The planner and the forecast: how large a pool must be, and when its keys are made."""
