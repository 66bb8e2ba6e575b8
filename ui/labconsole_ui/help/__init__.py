"""Help: the documentation, the page of steps and shortcuts, About."""
