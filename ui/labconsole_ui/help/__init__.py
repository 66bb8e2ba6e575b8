"""Help: the operator's guide, the page of steps and shortcuts, About."""
