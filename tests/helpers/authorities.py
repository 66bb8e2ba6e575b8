"""CAs for tests, in memory."""

from __future__ import annotations

from cryptography import x509

from labconsole.security.x509.issuing import Issuer, issue_root
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.validity import Validity


def named(text: str) -> x509.Name:
    """A distinguished name from RFC 4514 text."""
    return x509.Name.from_rfc4514_string(text)


def new_authority(common_name: str, validity: Validity | None = None, *, path_length: int | None = None) -> Issuer:
    """A root CA with a fresh P-256 key, valid for 60 days if not said otherwise."""
    key = generate(KeyType.P_256)
    name = named(f"CN={common_name},O=Lab Console")
    return Issuer(issue_root(key, name, validity or Validity.for_days(60), path_length=path_length), key)
