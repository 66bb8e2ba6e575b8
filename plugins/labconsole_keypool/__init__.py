"""The HSM key pool trial: keys made in idle time, wrapped, stored outside, and loaded back at peak."""
