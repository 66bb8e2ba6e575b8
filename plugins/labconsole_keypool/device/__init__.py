"""Work in a token: keys are generated, wrapped, loaded and used once; emulation of a slow device; certificates."""
