"""Issues certificates as RFC 5280 says: roots, what CAs certify, self-signed ones, link and cross certificates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509

from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.key_types import PrivateKey, PublicKey, problem_of
from labconsole.security.x509.profiles import (
    AUTHORITIES,
    CertificateProfile,
    Extensions,
    limits,
    naming,
    profile_extensions,
)
from labconsole.security.x509.signing import authority_key_id, certify, subject_key_id, where_revoked
from labconsole.security.x509.validity import CLOCK_SKEW, Validity


@dataclass(frozen=True)
class Issuer:
    """Who signs: a certificate with its private key (in memory, or in a token).

    `chain` holds the certificates above its own, the root last; nothing for a root.

    Raises:
        BadInput: the key is not that of the certificate.
    """

    certificate: x509.Certificate
    key: PrivateKey
    chain: tuple[x509.Certificate, ...] = ()

    def __post_init__(self) -> None:
        if self.certificate.public_key() != self.key.public_key():
            raise BadInput(
                f"The private key is not that of the certificate {self.certificate.subject.rfc4514_string()}: "
                "choose the two that belong together."
            )


def make_root(
    key: PrivateKey,
    subject: x509.Name,
    validity: Validity,
    *,
    path_length: int | None = None,
    name_constraints: Sequence[x509.GeneralName] = (),
) -> x509.Certificate:
    """A self-signed CA certificate.

    Args:
        path_length: how many CAs may follow below it; None for any number, 0 if it signs end certificates only.
        name_constraints: what it may name, as in `profiles.limits`; nothing: anything.

    Raises:
        BadInput: the subject is empty; a weak key.
        TokenError: the key lies in a token that refuses.
    """
    _check_ca_subject(subject)
    extensions = profile_extensions(CertificateProfile.ROOT, key.public_key(), path_length=path_length)
    return _signed_by_itself(key, subject, validity, (*extensions, *_limited_to(name_constraints)))


def make_self_signed(
    key: PrivateKey,
    subject: x509.Name,
    names: Sequence[x509.GeneralName],
    profile: CertificateProfile,
    validity: Validity,
) -> x509.Certificate:
    """An end certificate without any CA, which the other side pins by its fingerprint.

    Raises:
        BadInput: the profile is that of a CA, does not fit the type of key, or lacks a name; a weak key.
        TokenError: the key lies in a token that refuses.
    """
    if profile in AUTHORITIES:
        raise BadInput("This certificate is for use without any CA: choose the profile of an end certificate.")
    _check_names(profile, names)
    extensions = profile_extensions(profile, key.public_key())
    return _signed_by_itself(key, subject, validity, (*extensions, *naming(subject, names)))


def issue(
    issuer: Issuer,
    public_key: PublicKey,
    subject: x509.Name,
    names: Sequence[x509.GeneralName],
    profile: CertificateProfile,
    validity: Validity,
    *,
    crl_url: str = "",
    ocsp_url: str = "",
    name_constraints: Sequence[x509.GeneralName] = (),
    path_length: int | None = None,
) -> x509.Certificate:
    """A certificate for `public_key` by `issuer`, with an own random serial number.

    `names` go into subjectAltName; `crl_url` and `ocsp_url` tell where one reads whether it is revoked.
    `name_constraints` and `path_length` are for an intermediate CA, as in `make_root`. An end that comes less than an
    hour after the issuer's own is set to that.

    Raises:
        BadInput: the issuer may not issue that (it is no CA, its path length, it ends earlier), the profile does not
            fit the type of key, or lacks a name; a weak key.
        TokenError: the issuer's key lies in a token that refuses.
    """
    if profile is CertificateProfile.ROOT:
        raise BadInput("A root signs itself, nobody issues it: choose the profile of an intermediate CA.")
    if profile not in AUTHORITIES and (name_constraints or path_length is not None):
        raise BadInput("Limits of names and path length are for CAs only: leave them out for an end certificate.")
    _check_names(profile, names)
    extensions = (
        *profile_extensions(profile, public_key, path_length=path_length),
        *naming(subject, names),
        *_limited_to(name_constraints),
        *where_revoked(crl_url, ocsp_url),
    )
    key_id = x509.SubjectKeyIdentifier.from_public_key(public_key)
    if profile in AUTHORITIES:
        return _certify_ca(issuer, public_key, subject, key_id, validity, extensions, path_length)
    return _certify(issuer, public_key, subject, key_id, validity, extensions)


def cross_certificate(
    issuer: Issuer,
    other: x509.Certificate,
    validity: Validity,
    *,
    name_constraints: Sequence[x509.GeneralName] = (),
    path_length: int | None = None,
) -> x509.Certificate:
    """Another CA's name and key certified by `issuer`: whoever trusts `issuer` then trusts what `other` issues.

    It is limited as `other` itself is where `name_constraints` or `path_length` do not say how.

    Raises:
        BadInput: `other` is no CA, or has no key that gets a certificate; `issuer` may not issue that.
        TokenError: the issuer's key lies in a token that refuses.
    """
    public_key = other.public_key()
    if not isinstance(public_key, PublicKey):
        raise BadInput(problem_of(public_key))
    if path_length is None:
        path_length = _ca_constraints(other).path_length
    limited = _limited_to(name_constraints) or tuple(
        (extension.value, extension.critical)
        for extension in other.extensions
        if extension.oid == x509.NameConstraints.oid
    )
    extensions = (
        *profile_extensions(CertificateProfile.INTERMEDIATE, public_key, path_length=path_length),
        *limited,
    )
    key_id = subject_key_id(other)
    return _certify_ca(issuer, public_key, other.subject, key_id, validity, extensions, path_length)


def link_certificates(old: Issuer, new: Issuer) -> tuple[x509.Certificate, x509.Certificate]:
    """Old with new, new with old (RFC 9810, 4.4): who trusts one of two roots of a State trusts the other through them.

    "Old with new" is the old key certified by the new one, for as long as the old root holds; "new with old" the new
    key certified by the old one, from the new root's beginning until the old one's end.

    Raises:
        BadInput: the two never hold at the same time, or one may not certify the other.
        TokenError: a key lies in a token that refuses.
    """
    end = min(old.certificate.not_valid_after_utc, new.certificate.not_valid_after_utc)
    if end <= max(old.certificate.not_valid_before_utc, new.certificate.not_valid_before_utc):
        raise BadInput("The old and the new CA never hold at the same time: make the new one before the old one ends.")
    return (
        cross_certificate(new, old.certificate, Validity(old.certificate.not_valid_before_utc, end)),
        cross_certificate(old, new.certificate, Validity(new.certificate.not_valid_before_utc, end)),
    )


def _signed_by_itself(
    key: PrivateKey, subject: x509.Name, validity: Validity, extensions: Extensions
) -> x509.Certificate:
    public_key = key.public_key()
    _check_key(public_key)
    key_id = x509.SubjectKeyIdentifier.from_public_key(public_key)
    authority = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(key_id)
    extensions = ((key_id, False), (authority, False), *extensions)
    return certify(key, subject, public_key, subject, validity, extensions)


def _certify_ca(
    issuer: Issuer,
    public_key: PublicKey,
    subject: x509.Name,
    key_id: x509.SubjectKeyIdentifier,
    validity: Validity,
    extensions: Extensions,
    path_length: int | None,
) -> x509.Certificate:
    """Certify a CA, for which the issuer's path length must have room; itself under another key needs none (6.1.4)."""
    _check_ca_subject(subject)
    allowed = _ca_constraints(issuer.certificate).path_length
    if allowed is not None and subject != issuer.certificate.subject:
        if allowed == 0:
            raise BadInput(
                "This CA signs end certificates only (path length 0): choose one that may have CAs below it."
            )
        if path_length is not None and path_length >= allowed:
            raise BadInput(f"Below this CA, the path length can be at most {allowed - 1}: choose a smaller one.")
    return _certify(issuer, public_key, subject, key_id, validity, extensions)


def _certify(
    issuer: Issuer,
    public_key: PublicKey,
    subject: x509.Name,
    key_id: x509.SubjectKeyIdentifier,
    validity: Validity,
    extensions: Extensions,
) -> x509.Certificate:
    _ca_constraints(issuer.certificate)
    _check_key(public_key)
    validity = _within(issuer.certificate, validity)
    extensions = ((key_id, False), (authority_key_id(issuer.certificate), False), *extensions)
    return certify(issuer.key, issuer.certificate.subject, public_key, subject, validity, extensions)


def _check_key(public_key: PublicKey) -> None:
    problem = problem_of(public_key)
    if problem:
        raise BadInput(problem)


def _check_ca_subject(subject: x509.Name) -> None:
    if not subject.rdns:
        raise BadInput("A CA needs a subject: name it, as in CN=State A Root,C=SG.")


def _check_names(profile: CertificateProfile, names: Sequence[x509.GeneralName]) -> None:
    if profile is CertificateProfile.TLS_SERVER and not names:
        raise BadInput("A TLS server needs its host name as an alternative name, as in broker.example: add it.")


def _ca_constraints(certificate: x509.Certificate) -> x509.BasicConstraints:
    for extension in certificate.extensions:
        if isinstance(extension.value, x509.BasicConstraints) and extension.value.ca:
            return extension.value
    raise BadInput(f"{certificate.subject.rfc4514_string()} is no CA, so it issues nothing: choose a CA.")


def _within(issuer: x509.Certificate, validity: Validity) -> Validity:
    end = issuer.not_valid_after_utc
    if validity.not_after > end + CLOCK_SKEW:
        raise BadInput(f"The CA's own certificate ends on {end:%Y-%m-%d}: choose an end before that.")
    return Validity(validity.not_before, min(validity.not_after, end))


def _limited_to(names: Sequence[x509.GeneralName]) -> Extensions:
    return ((limits(names), True),) if names else ()
