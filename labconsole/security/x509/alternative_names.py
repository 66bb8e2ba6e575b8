"""Alternative names (RFC 5280, 4.2.1.6) as text and back; hosts in any script by IDNA 2008 (RFC 5891)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable

import idna
from asn1crypto import core
from cryptography import x509

from labconsole.safe_text import hidden_characters, shown
from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.distinguished_names import name_as_text, name_from_text

_SMTP_UTF8_MAILBOX = x509.ObjectIdentifier("1.3.6.1.5.5.7.8.9")
"""RFC 9598: a mail address whose local part is not ASCII."""
_USER_PRINCIPAL_NAME = x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2.3")

_WITH_PREFIX = re.compile(r"(DNS|IP|URI|email|DIR):(.+)", re.IGNORECASE | re.DOTALL)
_ACE = "xn--"


def general_name_from_text(text: str) -> x509.GeneralName:
    """An alternative name: a host (`bücher.example`, `*.example`), `IP:`, `URI:`, `email:` or `DIR:CN=...`.

    A bare IP address or mail address is one too. Raises BadInput.
    """
    return _from_text(text, ipaddress.ip_address)


def name_constraint_from_text(text: str) -> x509.GeneralName:
    """A subtree for name constraints (RFC 5280, 4.2.1.10): as an alternative name, but `IP:` has a network.

    Raises BadInput.
    """
    return _from_text(text, ipaddress.ip_network)


def general_name_as_text(name: x509.GeneralName) -> str:
    """`bücher.example (xn--bcher-kva.example)`, `IP:192.0.2.1` ...: the U-label, and the A-label beside it."""
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
    """The first of `names` that is none which `general_name_from_text` makes: what a CSR brings can be anything.

    Libraries disagree about such names (`a.example<U+0000>.b.example`), and nobody here looks at other kinds of names.
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
    if isinstance(made, x509.DNSName | x509.RFC822Name):  # hosts are made in small letters
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
    """A URI, its scheme said. Raises ValueError."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:\S+", text) or not text.isascii():
        raise ValueError("a URI begins with its scheme, as in http://, and has ASCII characters only, the rest as %XX")
    return x509.UniformResourceIdentifier(text)


def _host_as_text(host: str) -> str:
    """The U-label form with the A-label form behind it; hosts that IDNA does not allow only as they are."""
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
        except (ValueError, TypeError):  # not as its standard says: shown as it is
            return f"{kind}, damaged: {name.value.hex()}"
    return f"other name {name.type_id.dotted_string}: {name.value.hex()}"
