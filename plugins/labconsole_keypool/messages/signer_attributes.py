"""The attributes of the signer that a sign request asks for, and their places in the certificate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from labconsole_keypool.messages.safe_xml import Element, SignRequestError


class Place(StrEnum):
    """Where in a certificate an attribute of the signer goes (csig 1.0; RFC 7773, 3.1.3)."""

    RDN = "rdn"
    """A part of the subject; named by its object identifier."""
    SAN = "san"
    """An alternative name; named by its GeneralName's tag number, or the object identifier of an otherName."""
    SDA = "sda"
    """A subject directory attribute; named by its object identifier."""


@dataclass(frozen=True, slots=True)
class SignerAttribute:
    """One attribute of the signer, and where in the certificate it goes."""

    place: Place
    reference: str
    value: str


def mapped(context: Element) -> Iterator[SignerAttribute]:
    """The attributes of a SAMLAuthContext: each mapping names the place of its value in the certificate.

    Raises:
        SignRequestError: a mapping lacks its place, reference or value.
    """
    for mapping in context.every("saci:IdAttributes/saci:AttributeMapping"):
        place = mapping.choice("Type", Place)
        yield SignerAttribute(
            place, mapping.attribute("Ref"), mapping.need("saml:Attribute/saml:AttributeValue").text()
        )


def requested(asked: Element) -> Iterator[SignerAttribute]:
    """The attributes that csig asks for by name: of several names of one, the first in order that the signer has.

    Raises:
        SignRequestError: one that is required is missing, or an element of these.
    """
    signer = {
        attribute.attribute("Name"): attribute.need("saml:AttributeValue").text()
        for attribute in asked.every("csig:Signer/saml:Attribute")
    }
    path = "csig:CertRequestProperties/csig:RequestedCertAttributes/csig:RequestedCertAttribute"
    for wanted in asked.every(path):
        names = sorted(wanted.every("csig:SamlAttributeName"), key=_order)
        values = (signer[name] for name in map(Element.text, names) if name in signer)
        value = next(values, wanted.attribute("DefaultValue", ""))
        if value:
            place = wanted.choice("CertNameType", Place, Place.RDN)
            yield SignerAttribute(place, wanted.attribute("CertAttributeRef"), value)
        elif wanted.attribute("Required", "false") in ("true", "1"):
            missing = wanted.attribute("FriendlyName", "") or wanted.attribute("CertAttributeRef", "an attribute")
            raise SignRequestError(
                f"The sign request needs {missing[:60]!r} of its signer and does not give it: add it."
            )


def _order(name: Element) -> int:
    given = name.attribute("Order", "0")
    try:
        return int(given)
    except ValueError as error:
        raise SignRequestError(f"The sign request's Order {given[:20]!r} is not a number: write one.") from error
