"""The V2X plugin: ETSI ITS stations that sign and verify messages (PRESERVE), and captures of their packets."""
