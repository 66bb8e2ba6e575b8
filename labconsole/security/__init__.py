"""Keys, secrets, identities and trust: what more than one plugin needs."""
