"""Issues certificates as RFC 5280 says: roots, what CAs certify, self-signed ones, link and cross certificates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509

from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.certificate_profiles import (
    AUTHORITIES,
    CertificateProfile,
    Extensions,
    naming,
    profile_extensions,
)
from labconsole.security.x509.issuing_rules import (
    ca_constraints,
    check_ca_subject,
    check_key,
    check_limits,
    check_names,
    check_path,
    within,
)
from labconsole.security.x509.key_types import PrivateKey, PublicKey, problem_of
from labconsole.security.x509.name_constraints import limits
from labconsole.security.x509.names import name_as_text
from labconsole.security.x509.signing import authority_key_id, certify, subject_key_id, where_revoked
from labconsole.security.x509.validity import Validity


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
                f"The private key is not that of the certificate {name_as_text(self.certificate.subject)}: "
                "choose the two that belong together."
            )


@dataclass(frozen=True)
class _Holder:
    """Whom a certificate is for."""

    subject: x509.Name
    public_key: PublicKey
    key_id: x509.SubjectKeyIdentifier


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
        name_constraints: what it may name, as in `name_limits.limits`; nothing: anything.

    Raises:
        BadInput: the subject is empty; a weak key.
        TokenError: the key lies in a token that refuses.
    """
    check_ca_subject(subject)
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
    check_names(profile, names)
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
        BadInput: the issuer may not issue that (it is no CA, its path length, its limits of names, it ends earlier),
            the profile does not fit the type of key, or lacks a name; a weak key.
        TokenError: the issuer's key lies in a token that refuses.
    """
    if profile is CertificateProfile.ROOT:
        raise BadInput("A root signs itself and has no issuer: choose the profile of an intermediate CA.")
    if profile not in AUTHORITIES and (name_constraints or path_length is not None):
        raise BadInput("Limits of names and path length are for CAs only: leave them out for an end certificate.")
    check_names(profile, names)
    check_limits(subject, names, (issuer.certificate, *issuer.chain))
    extensions = (
        *profile_extensions(profile, public_key, path_length=path_length),
        *naming(subject, names),
        *_limited_to(name_constraints),
        *where_revoked(crl_url, ocsp_url),
    )
    holder = _Holder(subject, public_key, x509.SubjectKeyIdentifier.from_public_key(public_key))
    if profile in AUTHORITIES:
        check_path(issuer.certificate, subject, path_length)
    return _certify(issuer, holder, validity, extensions)


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
        path_length = ca_constraints(other).path_length
    limited = _limited_to(name_constraints) or tuple(
        (extension.value, extension.critical)
        for extension in other.extensions
        if extension.oid == x509.NameConstraints.oid
    )
    extensions = (
        *profile_extensions(CertificateProfile.INTERMEDIATE, public_key, path_length=path_length),
        *limited,
    )
    check_path(issuer.certificate, other.subject, path_length)
    if other.subject != issuer.certificate.subject:  # itself under another key is free of its own limits (6.1.4)
        check_limits(other.subject, (), (issuer.certificate, *issuer.chain))
    return _certify(issuer, _Holder(other.subject, public_key, subject_key_id(other)), validity, extensions)


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
    check_key(public_key)
    key_id = x509.SubjectKeyIdentifier.from_public_key(public_key)
    authority = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(key_id)
    extensions = ((key_id, False), (authority, False), *extensions)
    return certify(key, subject, public_key, subject, validity, extensions)


def _certify(issuer: Issuer, holder: _Holder, validity: Validity, extensions: Extensions) -> x509.Certificate:
    ca_constraints(issuer.certificate)
    check_key(holder.public_key)
    extensions = ((holder.key_id, False), (authority_key_id(issuer.certificate), False), *extensions)
    validity = within(issuer.certificate, validity)
    return certify(issuer.key, issuer.certificate.subject, holder.public_key, holder.subject, validity, extensions)


def _limited_to(names: Sequence[x509.GeneralName]) -> Extensions:
    return ((limits(names), True),) if names else ()
