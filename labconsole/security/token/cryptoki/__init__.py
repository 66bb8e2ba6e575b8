"""Code of processes that load a PKCS#11 module (Cryptoki): nothing else imports it."""
