"""Describes certificates, CSRs, CRLs, keys and PKCS#12 files for people, and compares two of them."""
