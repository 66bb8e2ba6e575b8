"""Live figures and plots of the run that is going on."""
