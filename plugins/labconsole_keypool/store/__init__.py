"""Wrapped key pairs in a file: given out once, erased after use, every row linked to the one before."""
