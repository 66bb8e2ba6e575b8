"""The exchange between two States: what was handed over, what is missing, and the proof by a handshake."""
