"""Wrapper keys carried between tokens under M of N control."""
