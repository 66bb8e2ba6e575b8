"""Names in any script: distinguished and alternative names, as text and back; a certificate's name in lists."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import idna
from asn1crypto import core
from cryptography import x509
from cryptography.x509.oid import NameOID

from labconsole.errors import BadInput
from labconsole.safe_text import hidden_characters, shown, with_hex_pairs
from labconsole.security.x509.extensions import alternative_names


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
"""By keyword: those of RFC 4514, and other frequent ones."""
_NOT_IN_RFC_4514 = {_ATTRIBUTES[keyword].oid: keyword for keyword in ("E", "SERIALNUMBER", "T", "SN", "GN", "ORGID")}

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
    """RFC 4514 text; characters that are invisible or turn the direction of writing are hex pairs: safe to show."""
    return with_hex_pairs(name.rfc4514_string(_NOT_IN_RFC_4514))


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


_SMTP_UTF8_MAILBOX = x509.ObjectIdentifier("1.3.6.1.5.5.7.8.9")
"""RFC 9598: a mail address whose local part is not ASCII."""
_USER_PRINCIPAL_NAME = x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2.3")

_WITH_PREFIX = re.compile(r"(DNS|IP|URI|email|DIR):(.+)", re.IGNORECASE | re.DOTALL)
_ACE = "xn--"


def general_name_from_text(text: str) -> x509.GeneralName:
    """An alternative name: a host (`bücher.example`, `*.example`), `IP:`, `URI:`, `email:` or `DIR:CN=...`.

    A bare IP address or mail address is accepted, too. Raises BadInput.
    """
    return _from_text(text, ipaddress.ip_address)


def name_constraint_from_text(text: str) -> x509.GeneralName:
    """A subtree for name constraints (RFC 5280, 4.2.1.10): as an alternative name, but `IP:` has a network.

    Raises BadInput.
    """
    return _from_text(text, ipaddress.ip_network)


def general_name_as_text(name: x509.GeneralName) -> str:
    """`bücher.example (xn--bcher-kva.example)`, `IP:192.0.2.1` ...: the U-label, followed by the A-label."""
    match name:
        case x509.DNSName():
            return _host_as_text(name.value)
        case x509.RFC822Name():
            local, at, host = name.value.rpartition("@")
            return f"email:{shown(local)}{at}{_host_as_text(host)}"
        case x509.IPAddress():
            return f"IP:{name.value}"
        case x509.UniformResourceIdentifier():
            return f"URI:{shown(name.value)}"
        case x509.DirectoryName():
            return f"DIR:{name_as_text(name.value)}"
        case x509.RegisteredID():
            return f"OID:{name.value.dotted_string}"
        case x509.OtherName():
            return _other_name_as_text(name)
        case _:
            return shown(str(name.value))


def malformed(names: Iterable[x509.GeneralName]) -> x509.GeneralName | None:
    """The first of `names` that `general_name_from_text` would not create; None if all are well-formed.

    CSRs may contain anything: libraries disagree about names such as `a.example<U+0000>.b.example`.
    """
    return next((name for name in names if not _is_well_formed(name)), None)


def _is_well_formed(name: x509.GeneralName) -> bool:
    match name:
        case x509.IPAddress() | x509.DirectoryName():
            return True
        case x509.DNSName():
            text = f"DNS:{name.value}"
        case x509.RFC822Name():
            text = f"email:{name.value}"
        case x509.UniformResourceIdentifier():
            text = f"URI:{name.value}"
        case x509.OtherName() if name.type_id == _SMTP_UTF8_MAILBOX:
            text = _other_name_as_text(name)
        case _:
            return False
    try:
        made = general_name_from_text(text)
    except BadInput:
        return False
    if isinstance(made, x509.DNSName | x509.RFC822Name):  # created hosts are in lower case
        return isinstance(name, type(made)) and made.value.lower() == name.value.lower()
    return made == name


def _from_text(text: str, address: Callable[[str], object]) -> x509.GeneralName:
    stripped = text.strip()
    hidden = hidden_characters(stripped)
    if not stripped or hidden:
        what = f"has characters that do not show ({', '.join(hidden)})" if hidden else "is empty"
        raise BadInput(f"An alternative name {what}: write a host, IP:address, URI:..., email:... or DIR:CN=....")
    prefixed = _WITH_PREFIX.fullmatch(stripped)
    try:
        if prefixed is None:
            return _bare(stripped, address)
        kind, value = prefixed[1].upper(), prefixed[2].strip()
        match kind:
            case "IP":
                return x509.IPAddress(address(value))  # type: ignore[arg-type]  # an address, or a network
            case "URI":
                return _uri(value)
            case "EMAIL":
                return _mail(value)
            case "DIR":
                return x509.DirectoryName(name_from_text(value))
            case _:
                return _host(value)
    except ValueError as error:  # idna's are ValueErrors too
        raise BadInput(f"{text!r} is not an alternative name ({str(error).rstrip('.')}): correct it.") from error


def _bare(text: str, address: Callable[[str], object]) -> x509.GeneralName:
    try:
        return x509.IPAddress(address(text))  # type: ignore[arg-type]  # an address, or a network
    except ValueError:
        return _mail(text) if "@" in text else _host(text)


def _host(text: str) -> x509.DNSName:
    """The A-label form of a host. Raises ValueError."""
    wildcard = "*." if text.startswith("*.") else ""
    encoded = idna.encode(text.removeprefix(wildcard).removesuffix("."), uts46=True, std3_rules=True)
    return x509.DNSName(wildcard + encoded.decode("ascii"))


def _mail(text: str) -> x509.GeneralName:
    """A mail address: RFC 5280's where its local part is ASCII, else RFC 9598's. Raises ValueError."""
    local, at, host = text.rpartition("@")
    if not local or not at:
        raise ValueError("a mail address has a name, @ and a host")
    if local.isascii():
        return x509.RFC822Name(f"{local}@{_host(host).value}")
    u_labels = idna.decode(_host(host).value)
    return x509.OtherName(_SMTP_UTF8_MAILBOX, core.UTF8String(f"{local}@{u_labels}").dump())


def _uri(text: str) -> x509.UniformResourceIdentifier:
    """A URI with its scheme. Raises ValueError."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:\S+", text) or not text.isascii():
        raise ValueError("a URI begins with its scheme, as in http://, and has ASCII characters only, the rest as %XX")
    return x509.UniformResourceIdentifier(text)


def _host_as_text(host: str) -> str:
    """The U-label form followed by the A-label form; hosts that IDNA does not allow unchanged."""
    if _ACE not in host.lower():
        return shown(host)
    bare = host.removeprefix("*").removeprefix(".")
    try:
        decoded = idna.decode(bare)
    except UnicodeError:  # idna's errors are such
        return f"{shown(host)} (no valid international name)"
    return f"{host[: len(host) - len(bare)]}{shown(decoded)} ({shown(host)})"


def _other_name_as_text(name: x509.OtherName) -> str:
    kinds = {_SMTP_UTF8_MAILBOX: "email", _USER_PRINCIPAL_NAME: "UPN"}
    kind = kinds.get(name.type_id)
    if kind is not None:
        try:
            return f"{kind}:{shown(core.UTF8String.load(name.value, strict=True).native)}"
        except (ValueError, TypeError):  # malformed: shown unchanged
            return f"{kind}, damaged: {name.value.hex()}"
    return f"other name {name.type_id.dotted_string}: {name.value.hex()}"


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

_NAMING_ATTRIBUTES = (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME)


_LONGEST = 100
"""Characters of a name in a list or a sentence. A common name has 64 at most (RFC 5280, A.1); a CSR may have 58,000."""


def brief_name(name: x509.Name) -> str:
    """A distinguished name as `name_as_text` has it, for a table: at most 100 characters, the last one "…"."""
    return _cut(name_as_text(name))


def short_name(thing: x509.Certificate | x509.CertificateSigningRequest | x509.Name) -> str:
    """The name for lists: common name, else organisation, first alternative name, subject or serial number.

    Safe to show, and at most 100 characters. Certificates and CSRs come from the strict parser: nothing is raised.
    """
    subject = thing if isinstance(thing, x509.Name) else thing.subject
    values = (
        attribute.value for oid in _NAMING_ATTRIBUTES for attribute in reversed(subject.get_attributes_for_oid(oid))
    )
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
