"""Trust between States: bundles that are signed and taken in, and the matrix of who trusts whom."""
