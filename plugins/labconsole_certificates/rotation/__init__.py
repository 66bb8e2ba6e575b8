"""Rotation: replacing certificates and roots in time, while old and new hold together."""
