"""Profiles (TOML): scenarios and campaigns to run, and the timing profiles of devices."""
