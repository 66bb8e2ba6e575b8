"""Wrapper keys transferred between tokens under M of N control."""
