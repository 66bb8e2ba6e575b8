"""X.509 without any state: reading what comes from outside, issuing, CRLs, OCSP, path validation, descriptions."""
