"""What is done in a token: keys generated, wrapped, loaded and used once; a slow device emulated; certificates."""
