"""Distinguished names in any script, as text (RFC 4514) and back."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from cryptography import x509
from cryptography.x509.oid import NameOID

from labconsole.safe_text import hidden_characters, with_hex_pairs
from labconsole.security.x509.bad_input import BadInput


@dataclass(frozen=True)
class _Attribute:
    """An attribute type of names; `longest` in characters (RFC 5280, A.1), 0 for any number."""

    oid: x509.ObjectIdentifier
    longest: int = 0
    ascii_only: bool = False


_ATTRIBUTES = {
    "CN": _Attribute(NameOID.COMMON_NAME, 64),
    "O": _Attribute(NameOID.ORGANIZATION_NAME, 64),
    "OU": _Attribute(NameOID.ORGANIZATIONAL_UNIT_NAME, 64),
    "L": _Attribute(NameOID.LOCALITY_NAME, 128),
    "ST": _Attribute(NameOID.STATE_OR_PROVINCE_NAME, 128),
    "C": _Attribute(NameOID.COUNTRY_NAME),
    "STREET": _Attribute(NameOID.STREET_ADDRESS),
    "DC": _Attribute(NameOID.DOMAIN_COMPONENT, ascii_only=True),
    "UID": _Attribute(NameOID.USER_ID),
    "E": _Attribute(NameOID.EMAIL_ADDRESS, 255, ascii_only=True),
    "SERIALNUMBER": _Attribute(NameOID.SERIAL_NUMBER, 64, ascii_only=True),
    "T": _Attribute(NameOID.TITLE, 64),
    "SN": _Attribute(NameOID.SURNAME),
    "GN": _Attribute(NameOID.GIVEN_NAME),
    "ORGID": _Attribute(NameOID.ORGANIZATION_IDENTIFIER, 64),
}
"""By keyword: those of RFC 4514, and some that are often seen."""
_BESIDES_RFC_4514 = {_ATTRIBUTES[keyword].oid: keyword for keyword in ("E", "SERIALNUMBER", "T", "SN", "GN", "ORGID")}

# `cryptography` counts bytes where RFC 5280 counts characters, which leaves 21 to a Thai or Chinese name. They are read
# under stand-in types without a limit (arc 2.999 is for examples, ITU-T X.660), and the limits are kept here.
_STAND_INS = {keyword: x509.ObjectIdentifier(f"2.999.{number}") for number, keyword in enumerate(_ATTRIBUTES)}
_BY_STAND_IN = {_STAND_INS[keyword]: (keyword, attribute) for keyword, attribute in _ATTRIBUTES.items()}

_FORM = "write it as CN=Name,O=Organisation,C=SG"
_KEYWORD = re.compile(r"(?:^|(?<!\\)[,+])[A-Za-z]+(?==)")
_BLANKS_BEFORE_NEXT = re.compile(r"(?<!\\)((?:\\\\)*[,+])\s+")


def name_from_text(text: str) -> x509.Name:
    """A distinguished name from `CN=...,O=...,C=SG` (RFC 4514), values in any script; kept in Unicode's form NFC.

    Raises:
        BadInput: empty, not of this form, an unknown keyword, a value too long or with hidden characters.
    """
    stripped = _BLANKS_BEFORE_NEXT.sub(r"\1", unicodedata.normalize("NFC", text.strip()))
    stripped = _KEYWORD.sub(lambda keyword: keyword[0].upper(), stripped)
    if not stripped:
        raise BadInput(f"The distinguished name is empty: {_FORM}.")
    try:
        name = x509.Name.from_rfc4514_string(stripped, _STAND_INS)
        return x509.Name(x509.RelativeDistinguishedName(map(_attribute, part)) for part in name.rdns)
    except ValueError as error:
        reason = f" ({str(error).rstrip('.')})" if str(error) else ""
        raise BadInput(f"{text!r} is not a distinguished name{reason}: {_FORM}.") from error


def name_of(*values: tuple[str, str]) -> x509.Name:
    """A distinguished name of keywords and values in this order, as in ("O", "CAAS"), ("CN", "broker"); any script.

    Raises:
        BadInput: a value is empty, too long, or has hidden characters.
    """
    try:
        return x509.Name(
            [
                _attribute(x509.NameAttribute(_STAND_INS[keyword], unicodedata.normalize("NFC", value)))
                for keyword, value in values
            ]
        )
    except ValueError as error:
        raise BadInput(
            f"{' '.join(value for _, value in values)!r} cannot be used in a certificate: {error}."
        ) from error


def name_as_text(name: x509.Name) -> str:
    """RFC 4514; characters that do not show or turn the direction of writing are hex pairs: safe to show."""
    return with_hex_pairs(name.rfc4514_string(_BESIDES_RFC_4514))


def _attribute(read: x509.NameAttribute[str | bytes]) -> x509.NameAttribute[str | bytes]:
    """The attribute for its stand-in. Raises ValueError."""
    hidden = hidden_characters(read.value) if isinstance(read.value, str) else ()
    if hidden:
        raise ValueError(f"it has characters that do not show, {', '.join(hidden)}")
    if read.oid not in _BY_STAND_IN or not isinstance(read.value, str):
        return read
    keyword, attribute = _BY_STAND_IN[read.oid]
    if not read.value.strip():
        raise ValueError(f"{keyword} is empty")
    if attribute.longest and len(read.value) > attribute.longest:
        raise ValueError(f"{keyword} has {attribute.longest} characters at most, this one {len(read.value)}")
    if attribute.ascii_only and not read.value.isascii():
        raise ValueError(f"{keyword} has ASCII characters only")
    if keyword == "C" and re.fullmatch(r"[A-Za-z]{2}", read.value) is None:
        raise ValueError("C is a country code of two letters (ISO 3166), as in SG")
    return x509.NameAttribute(attribute.oid, read.value, _validate=False)
