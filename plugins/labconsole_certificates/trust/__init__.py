"""Trust between States: bundles that are signed and imported, and the matrix of who trusts whom."""
