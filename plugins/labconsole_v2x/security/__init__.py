"""Security of ETSI ITS messages (IEEE 1609.2, TS 103 097): certificates, signed and encrypted data, verification."""
