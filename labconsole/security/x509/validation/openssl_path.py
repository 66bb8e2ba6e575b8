"""Validates a path with an OpenSSL store: builds it, processes policies, and checks CRLs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from OpenSSL import crypto

from labconsole.security.x509.extensions import extension_of
from labconsole.security.x509.names import short_name
from labconsole.security.x509.signatures import crl_signed_by
from labconsole.security.x509.validation.judgement import Answer, Opinion

# x509_vfy.h; pyOpenSSL names neither: CRLs signed by another key than the certificates, and delta CRLs
_EXTENDED_CRL_SUPPORT = 0x1000
_USE_DELTAS = 0x2000

_POLICIES = crypto.X509StoreFlags.POLICY_CHECK

PATH_FLAGS = crypto.X509StoreFlags.PARTIAL_CHAIN | crypto.X509StoreFlags.X509_STRICT
"""A trusted certificate ends the path, self-signed or not; certificates must conform to RFC 5280."""
_ONE_CRL = PATH_FLAGS | _EXTENDED_CRL_SUPPORT | _USE_DELTAS | crypto.X509StoreFlags.CRL_CHECK
CRL_FLAGS = _ONE_CRL | crypto.X509StoreFlags.CRL_CHECK_ALL
"""A CRL of every issuer in the path is required."""
TLS_CRL_FLAGS = CRL_FLAGS & ~_EXTENDED_CRL_SUPPORT
"""The same within TLS, for CRLs that a key in the path has signed. For CRLs of other signers OpenSSL calls pyOpenSSL's
callback without a connection, which raises an error. After the handshake the path is judged by all CRLs."""
NO_CRL = 3
"""X509_V_ERR_UNABLE_TO_GET_CRL."""

CLOCK_AHEAD = timedelta(minutes=5)
"""The clock of a CA may be this far ahead: its CRL is accepted so long before its thisUpdate."""

_REVOKED = 23  # X509_V_ERR_CERT_REVOKED
_CRL_PATH = 54  # X509_V_ERR_CRL_PATH_VALIDATION_ERROR

_HINTS = {
    NO_CRL: ", so import one of its issuer",
    12: ", so publish or import its issuer's newer one",
    18: ", and is not trusted here itself",
    19: ", which is not trusted here",
    20: ", because it is not trusted here, or an intermediate is missing",
    21: ", because its issuer is not trusted here, or an intermediate is missing",
}
"""Remedies, by the error codes of x509_vfy.h."""


@dataclass(frozen=True)
class OpenSslPath:
    """OpenSSL's opinion. `path`: from the end certificate to the root, also where only a CRL rejects it."""

    opinion: Opinion
    path: tuple[x509.Certificate, ...] = ()
    revocation_unknown: tuple[x509.Name, ...] = ()
    """Issuers in the path without a CRL."""
    revoked: bool = False


class OpenSslStore:
    """Trusted certificates, intermediates and CRLs, prepared for OpenSSL; `at` is aware."""

    def __init__(
        self,
        roots: Iterable[x509.Certificate],
        intermediates: Iterable[x509.Certificate],
        crls: Iterable[x509.CertificateRevocationList],
        *,
        at: datetime,
        crls_required: bool,
    ) -> None:
        trusted = [crypto.X509.from_cryptography(root) for root in roots]
        lists = tuple(crls)
        self._intermediates = [crypto.X509.from_cryptography(certificate) for certificate in intermediates]
        self._crls_required = crls_required
        self._lists = lists
        self._paths = _store(trusted, (), PATH_FLAGS | _POLICIES, at)
        moment = with_clock_skew(lists, at)
        self._one_crl = _store(trusted, lists, _ONE_CRL | _POLICIES, moment) if lists else None
        self._all_crls = _store(trusted, lists, CRL_FLAGS | _POLICIES, moment) if lists or crls_required else None

    def judge(self, leaf: x509.Certificate, presented: Iterable[x509.Certificate] = ()) -> OpenSslPath:
        """Judge `leaf`, with the intermediates `presented` along with it.

        Unless CRLs are required, a CRL may be missing, but only for issuers without any CRL: where one exists that is
        unusable (of another key or scope, damaged), a newer one may have been withheld.
        """
        certificate = crypto.X509.from_cryptography(leaf)
        others = [*self._intermediates, *map(crypto.X509.from_cryptography, presented)]
        if self._all_crls is not None:
            try:
                return OpenSslPath(Opinion(Answer.ACCEPTED), _path(self._all_crls, certificate, others))
            except crypto.X509StoreContextError as refusal:
                if self._crls_required:
                    return OpenSslPath(_refusal(refusal), revoked=refusal.errors[0] == _REVOKED)
                if refusal.errors[0] == _CRL_PATH and self._has_revoked_signer(others):
                    return OpenSslPath(_refusal(refusal))
        try:
            path = _path(self._paths, certificate, others)
        except crypto.X509StoreContextError as refusal:
            return OpenSslPath(_refusal(refusal))
        return self._with_known_crls(path, others)

    def _knows_crl(self, certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
        """Whether any CRL is of the key of `issuer`, or of who issues the CRLs of `certificate` in its place."""
        named = _crl_issuers(certificate)
        return any(crl.issuer in named or crl_signed_by(crl, issuer) for crl in self._lists)

    def _has_revoked_signer(self, others: Sequence[crypto.X509]) -> bool:
        """Whether a CRL was signed with a key of its own whose certificate, one of `others`, is revoked."""
        signers = [other for other in others if self._is_revoked(other, others)]
        return any(crl_signed_by(crl, signer.to_cryptography()) for crl in self._lists for signer in signers)

    def _is_revoked(self, certificate: crypto.X509, others: Sequence[crypto.X509]) -> bool:
        try:
            _path(self._one_crl or self._paths, certificate, others)
        except crypto.X509StoreContextError as refusal:
            return bool(refusal.errors[0] == _REVOKED)
        return False

    def _with_known_crls(self, path: tuple[x509.Certificate, ...], others: Sequence[crypto.X509]) -> OpenSslPath:
        if self._one_crl is None:
            return OpenSslPath(Opinion(Answer.ACCEPTED), path, _without_twice(step.issuer for step in path[:-1]))
        unknown = []
        for certificate, issuer in zip(path, (*path[1:], path[-1]), strict=True):
            try:
                _path(self._one_crl, crypto.X509.from_cryptography(certificate), others)
            except crypto.X509StoreContextError as refusal:
                if refusal.errors[0] != NO_CRL or self._knows_crl(certificate, issuer):
                    return OpenSslPath(_refusal(refusal), path, revoked=refusal.errors[0] == _REVOKED)
                unknown.append(certificate.issuer)
        return OpenSslPath(Opinion(Answer.ACCEPTED), path, _without_twice(unknown))


def _path(
    store: crypto.X509Store, certificate: crypto.X509, others: Sequence[crypto.X509]
) -> tuple[x509.Certificate, ...]:
    steps = crypto.X509StoreContext(store, certificate, others).get_verified_chain()
    return tuple(step.to_cryptography() for step in steps)


def with_clock_skew(crls: Iterable[x509.CertificateRevocationList], at: datetime) -> datetime:
    """The moment at which paths are judged with `crls`: `at`, or up to five minutes later, when all of them hold.

    OpenSSL knows no tolerance. Certificates are judged at `at` as well, without CRLs.
    """
    ahead = (crl.last_update_utc for crl in crls if at < crl.last_update_utc <= at + CLOCK_AHEAD)
    return max(ahead, default=at)


def fill(
    store: crypto.X509Store,
    trusted: Iterable[crypto.X509],
    crls: Iterable[x509.CertificateRevocationList],
    flags: int,
    at: datetime,
) -> None:
    """Put trusted certificates and CRLs into `store`, and have it judge at `at` (aware) by flags of x509_vfy.h."""
    for certificate in trusted:
        store.add_cert(certificate)
    for crl in crls:
        store.add_crl(crl)
    store.set_time(at.astimezone(UTC))
    store.set_flags(flags)


def _store(
    trusted: Iterable[crypto.X509], crls: Iterable[x509.CertificateRevocationList], flags: int, at: datetime
) -> crypto.X509Store:
    store = crypto.X509Store()
    fill(store, trusted, crls, flags, at)
    return store


def _crl_issuers(certificate: x509.Certificate) -> set[x509.Name]:
    """Whose CRLs speak of `certificate` besides its issuer's, as its distribution points name them (4.2.1.13)."""
    points = extension_of(certificate.extensions, x509.CRLDistributionPoints) or ()
    return {name.value for point in points for name in point.crl_issuer or () if isinstance(name, x509.DirectoryName)}


def _without_twice(names: Iterable[x509.Name]) -> tuple[x509.Name, ...]:
    return tuple(dict.fromkeys(names))


def _refusal(refusal: crypto.X509StoreContextError) -> Opinion:
    code, _, words = refusal.errors
    said = f"{words}{_HINTS.get(code, '')}"
    try:
        name = short_name(refusal.certificate.to_cryptography())
    except crypto.Error:  # it is about no single certificate, but the policies of the path
        return Opinion(Answer.REFUSED, said)
    return Opinion(Answer.REFUSED, f"{name}: {said}")
