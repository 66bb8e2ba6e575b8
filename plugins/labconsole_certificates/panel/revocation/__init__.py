"""Revocation in the window: CRLs and the OCSP responder."""
