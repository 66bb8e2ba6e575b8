"""`labconsole pki demo`: States that exchange certificates and bundles as files, and prove it by handshakes."""
