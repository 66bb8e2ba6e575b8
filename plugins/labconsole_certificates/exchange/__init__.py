"""The exchange between two States: what was sent, what is missing, and the proof by a handshake."""
