"""Trust between States: single roots and pins, signed bundles, and the matrix of trust."""
