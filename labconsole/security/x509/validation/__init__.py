"""Path validation (RFC 5280, section 6) by two libraries; a certificate is accepted only if both accept it."""
