"""A PKCS#11 token: loaded, opened, probed, and its keys used as `cryptography` private keys."""
