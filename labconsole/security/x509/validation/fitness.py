"""Whether a certificate is for a purpose and a name: the console looks itself, as not every library can always tell."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from labconsole.security.x509.extensions import alternative_names, extension_of
from labconsole.security.x509.names import general_name_as_text, general_name_from_text, short_name
from labconsole.security.x509.validation.judgement import Purpose

_USAGES = MappingProxyType(
    {Purpose.TLS_SERVER: ExtendedKeyUsageOID.SERVER_AUTH, Purpose.TLS_CLIENT: ExtendedKeyUsageOID.CLIENT_AUTH}
)


def misfit(path: Sequence[x509.Certificate], purpose: Purpose, name: str | None) -> str:
    """Why the end certificate `path[0]` is not for `purpose` or not for `name` (DNS name or IP address), or nothing.

    An extended key usage of a CA limits what it issues, too, as all common TLS libraries have it.

    Raises:
        BadInput: `name` is neither a DNS name nor an IP address.
    """
    for certificate in path:
        if not _allows(certificate, purpose):
            return f"the extended key usage of {short_name(certificate)} does not allow {purpose}"
    if name is None:
        return ""
    wanted = general_name_from_text(name)
    names = alternative_names(path[0].extensions)
    if any(_matches(offered, wanted) for offered in names):
        return ""
    offered = ", ".join(map(general_name_as_text, names)) or "no names at all"
    return f"{short_name(path[0])} is for {offered}, and not for {name}"


def _allows(certificate: x509.Certificate, purpose: Purpose) -> bool:
    usage = _USAGES.get(purpose)
    allowed = extension_of(certificate.extensions, x509.ExtendedKeyUsage)
    if usage is None or allowed is None:
        return True
    return usage in allowed or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in allowed


def _matches(offered: x509.GeneralName, wanted: x509.GeneralName) -> bool:
    """RFC 9525, 6.3: DNS names whatever their case; a `*` stands for the whole first label."""
    if not (isinstance(offered, x509.DNSName) and isinstance(wanted, x509.DNSName)):
        return offered == wanted
    pattern, name = offered.value.lower().rstrip("."), wanted.value.lower().rstrip(".")
    if pattern.startswith("*."):
        return pattern[2:] == name.partition(".")[2] and "." in pattern[2:]
    return pattern == name
