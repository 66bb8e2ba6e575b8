"""X.509 without any state: strict reading of foreign input, issuing, CRLs, CSRs, CMS, path validation."""

import warnings

# `cryptography` warns on standard error of input that it reads nevertheless (and counts bytes of names where RFC 5280
# counts characters): descriptions show the operator what matters. Here, so that each process has the filter.
warnings.filterwarnings("ignore", message="Attribute's length must be", category=UserWarning)
warnings.filterwarnings("ignore", message="Parsed a serial number which wasn't positive")
warnings.filterwarnings("ignore", message="PKCS#(7|12) .* could not be parsed as DER")
