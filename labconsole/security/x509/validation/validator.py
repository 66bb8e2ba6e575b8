"""Validates certificates: accepted only if `cryptography` and OpenSSL, the latter with CRLs, both accept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from types import MappingProxyType

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from labconsole.security.x509.extensions import alternative_names, extension_of
from labconsole.security.x509.names import general_name_as_text, general_name_from_text, name_as_text, short_name
from labconsole.security.x509.signatures import issued_by
from labconsole.security.x509.validation.cryptography_path import CryptographyVerifier
from labconsole.security.x509.validation.judgement import Answer, Decision, Judgement, Opinion, Purpose
from labconsole.security.x509.validation.openssl_path import OpenSslStore

_USAGES = MappingProxyType(
    {Purpose.TLS_SERVER: ExtendedKeyUsageOID.SERVER_AUTH, Purpose.TLS_CLIENT: ExtendedKeyUsageOID.CLIENT_AUTH}
)


def usage_problem(path: Sequence[x509.Certificate], purpose: Purpose, name: str | None) -> str:
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
    """RFC 9525, 6.3: DNS names whatever their case; a `*` matches the whole first label."""
    if not (isinstance(offered, x509.DNSName) and isinstance(wanted, x509.DNSName)):
        return offered == wanted
    pattern, name = offered.value.lower().rstrip("."), wanted.value.lower().rstrip(".")
    if pattern.startswith("*."):
        return pattern[2:] == name.partition(".")[2] and "." in pattern[2:]
    return pattern == name


class Validator:
    """Validates any number of end certificates against the same roots, intermediates and CRLs at one time.

    `at` is aware. A root is whatever is trusted, self-signed or not. `crls_required`: a path is refused unless there is
    a CRL of every issuer in it. Otherwise that is so for issuers of which any CRL is known, out of date or not; the
    judgement names those without any, whose revoked certificates are accepted.
    """

    def __init__(
        self,
        roots: Iterable[x509.Certificate],
        intermediates: Iterable[x509.Certificate],
        crls: Iterable[x509.CertificateRevocationList],
        *,
        at: datetime,
        crls_required: bool = False,
    ) -> None:
        trusted = tuple(roots)
        self._intermediates = _of_use(intermediates)
        self._openssl = OpenSslStore(trusted, self._intermediates, crls, at=at, crls_required=crls_required)
        self._cryptography = CryptographyVerifier(trusted, at=at)

    def validate(
        self,
        leaf: x509.Certificate,
        purpose: Purpose = Purpose.ANY,
        name: str | None = None,
        presented: Sequence[x509.Certificate] = (),
    ) -> Judgement:
        """Judge `leaf` for `purpose`; `name` (DNS name or IP address) must be among its subject alternative names.

        `presented` are intermediates that come with it.

        Raises:
            BadInput: `name` is neither a DNS name nor an IP address.
        """
        others = _of_use(presented)
        openssl = self._openssl.judge(leaf, others)
        path = openssl.path
        cryptography = self._cryptography.judge(leaf, path[1:] or (*self._intermediates, *others), path)
        unfit = usage_problem(path or (leaf,), purpose, name)
        accepted = openssl.opinion.answer is Answer.ACCEPTED and cryptography.answer is not Answer.REFUSED and not unfit
        if accepted:
            decided_by = Decision.BOTH if cryptography.answer is Answer.ACCEPTED else Decision.OPENSSL
            why = _acceptance(cryptography, openssl.revocation_unknown)
        else:
            decided_by, why = _refusal(cryptography, openssl.opinion, unfit)
        return Judgement(
            accepted,
            cryptography,
            openssl.opinion,
            decided_by,
            why,
            path,
            openssl.revocation_unknown,
            openssl.revoked,
        )


def validate(
    leaf: x509.Certificate,
    intermediates: Iterable[x509.Certificate],
    roots: Iterable[x509.Certificate],
    crls: Iterable[x509.CertificateRevocationList] = (),
    *,
    at: datetime,
    purpose: Purpose = Purpose.ANY,
    name: str | None = None,
    crls_required: bool = False,
) -> Judgement:
    """Judge one end certificate: see Validator."""
    return Validator(roots, intermediates, crls, at=at, crls_required=crls_required).validate(leaf, purpose, name)


def _of_use(intermediates: Iterable[x509.Certificate]) -> tuple[x509.Certificate, ...]:
    """Without self-signed ones: they lead nowhere, and OpenSSL would take them before a link certificate that does."""
    return tuple(one for one in intermediates if one.subject != one.issuer or not issued_by(one, one))


def _acceptance(cryptography: Opinion, revocation_unknown: tuple[x509.Name, ...]) -> str:
    if cryptography.answer is Answer.ACCEPTED:
        said = "cryptography and OpenSSL both accept it."
    else:
        said = f"OpenSSL accepts it; cryptography does not know: {cryptography.why}."
    if not revocation_unknown:
        return said
    issuers = " and ".join(map(name_as_text, revocation_unknown))
    return (
        f"{said} Whether it is revoked is not known: there is no CRL of {issuers}, and until one is imported, revoked "
        "certificates are accepted."
    )


def _refusal(cryptography: Opinion, openssl: Opinion, unfit: str) -> tuple[Decision, str]:
    match openssl.answer, cryptography.answer:
        case Answer.REFUSED, Answer.REFUSED:
            return Decision.BOTH, f"Both refuse it. OpenSSL: {openssl.why}. cryptography: {cryptography.why}."
        case Answer.REFUSED, Answer.UNKNOWN:
            return (
                Decision.OPENSSL,
                f"OpenSSL refuses it: {openssl.why}. cryptography does not know: {cryptography.why}.",
            )
        case Answer.REFUSED, _:
            return (
                Decision.OPENSSL,
                f"OpenSSL refuses it: {openssl.why}. cryptography, which reads no CRLs, accepts it.",
            )
        case _, Answer.REFUSED:
            return Decision.CRYPTOGRAPHY, f"cryptography refuses it: {cryptography.why}. OpenSSL accepts it."
        case _:
            return (
                Decision.CONSOLE,
                f"It does not fit: {unfit}. cryptography and OpenSSL have nothing against its path.",
            )
