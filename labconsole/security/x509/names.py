"""Names in any script: distinguished names and alternative names, as text and back; what to call a certificate."""

from __future__ import annotations

from cryptography import x509
from cryptography.x509.oid import NameOID

from labconsole.security.x509.alternative_names import (
    general_name_as_text,
    general_name_from_text,
    name_constraint_from_text,
)
from labconsole.security.x509.distinguished_names import name_as_text, name_from_text, name_of
from labconsole.security.x509.extensions import alternative_names
from labconsole.security.x509.shown_text import shown

__all__ = [
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


def short_name(thing: x509.Certificate | x509.CertificateSigningRequest | x509.Name) -> str:
    """What to call it in a list: common name, else organisation, first alternative name, whole subject, serial number.

    Safe to show. The things come through the gate: nothing is raised.
    """
    subject = thing if isinstance(thing, x509.Name) else thing.subject
    values = (attribute.value for oid in _TELLING for attribute in reversed(subject.get_attributes_for_oid(oid)))
    telling = next((value for value in values if isinstance(value, str) and value.strip()), None)
    if telling is not None:
        return shown(telling)
    if not isinstance(thing, x509.Name):
        names = alternative_names(thing.extensions)
        if names:
            return general_name_as_text(names[0])
    if list(subject):
        return name_as_text(subject)
    return f"serial number {thing.serial_number:x}" if isinstance(thing, x509.Certificate) else "without a name"
