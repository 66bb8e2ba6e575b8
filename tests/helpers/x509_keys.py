"""Private keys for tests: of each type one that is made once per run, since RSA takes long."""

from __future__ import annotations

from functools import cache

from labconsole.security.x509.key_types import KeyType, PrivateKey, generate


@cache
def key_of(type: KeyType) -> PrivateKey:
    """The run's own key of a type."""
    return generate(type)
