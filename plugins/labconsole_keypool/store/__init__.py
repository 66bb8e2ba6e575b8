"""Wrapped key pairs in a file: claimed once, erased after use, every row linked to the one before."""
