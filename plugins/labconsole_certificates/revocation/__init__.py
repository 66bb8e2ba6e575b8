"""Revocation: CRLs and their renewal, an OCSP responder for the lab, and its check."""
