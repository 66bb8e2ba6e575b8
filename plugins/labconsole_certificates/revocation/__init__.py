"""Revocation as a service: an OCSP responder for the lab, and its check."""
