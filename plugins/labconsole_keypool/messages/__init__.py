"""Sign requests (OASIS DSS, csig) and their answers."""
