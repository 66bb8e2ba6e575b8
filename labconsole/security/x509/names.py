"""Names in any script: distinguished names and alternative names, as text and back; what to call a certificate."""

from __future__ import annotations

from cryptography import x509
from cryptography.x509.oid import NameOID

from labconsole.safe_text import shown
from labconsole.security.x509.alternative_names import (
    general_name_as_text,
    general_name_from_text,
    name_constraint_from_text,
)
from labconsole.security.x509.distinguished_names import name_as_text, name_from_text, name_of
from labconsole.security.x509.extensions import alternative_names

__all__ = [
    "brief_name",
    "general_name_as_text",
    "general_name_from_text",
    "name_as_text",
    "name_constraint_from_text",
    "name_from_text",
    "name_of",
    "short_name",
    "shown",
]

_TELLING = (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME)


_LONGEST = 100
"""Characters of a name in a list or a sentence. A common name has 64 at most (RFC 5280, A.1); a CSR may have 58,000."""


def brief_name(name: x509.Name) -> str:
    """A distinguished name as `name_as_text` has it, for a table: at most 100 characters, the last one "…"."""
    return _cut(name_as_text(name))


def short_name(thing: x509.Certificate | x509.CertificateSigningRequest | x509.Name) -> str:
    """What to call it in a list: common name, else organisation, first alternative name, whole subject, serial number.

    Safe to show, and at most 100 characters. The things come through the gate: nothing is raised.
    """
    subject = thing if isinstance(thing, x509.Name) else thing.subject
    values = (attribute.value for oid in _TELLING for attribute in reversed(subject.get_attributes_for_oid(oid)))
    telling = next((value for value in values if isinstance(value, str) and value.strip()), None)
    if telling is not None:
        return _cut(shown(telling))
    if not isinstance(thing, x509.Name):
        names = alternative_names(thing.extensions)
        if names:
            return _cut(general_name_as_text(names[0]))
    if list(subject):
        return brief_name(subject)
    return f"serial number {thing.serial_number:x}" if isinstance(thing, x509.Certificate) else "without a name"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
