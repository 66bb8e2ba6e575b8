"""Rotation: replaces certificates and roots in time, while old and new are valid together."""
