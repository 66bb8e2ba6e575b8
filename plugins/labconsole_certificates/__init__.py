"""The certificates plugin: every State its own CA, CSRs exchanged both ways, trust that is rotated and revoked."""
