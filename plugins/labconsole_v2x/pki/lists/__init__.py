"""Trust lists of TS 102 941: CTL, ECTL and CRL, signed, published, served, and followed by stations."""
