"""Live figures and plots of the run in progress."""
