"""X.509 without any state: reading what comes from outside, issuing, CRLs, OCSP, path validation, descriptions."""

import warnings

# `cryptography` warns on standard error of what it reads all the same (and counts bytes of names where RFC 5280 counts
# characters): nothing for the operator, whom descriptions tell what to know. Here, so that each process has it.
warnings.filterwarnings("ignore", message="Attribute's length must be", category=UserWarning)
warnings.filterwarnings("ignore", message="Parsed a serial number which wasn't positive")
warnings.filterwarnings("ignore", message="PKCS#(7|12) .* could not be parsed as DER")
