"""The CA machinery: roots, what CAs issue, self-signed, link and cross certificates (RFC 5280); CRLs are in `crls`.

The certificates plugin, the lab identities and the signing CA of the key pool all issue by these functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import AuthorityInformationAccessOID, NameOID

from labconsole.errors import BadInput
from labconsole.security.x509.certificate_profiles import (
    AUTHORITIES,
    CertificateProfile,
    Extensions,
    naming,
    profile_extensions,
)
from labconsole.security.x509.extensions import extension_of
from labconsole.security.x509.key_types import PrivateKey, PublicKey, problem_of, signing_hash
from labconsole.security.x509.name_constraints import limits, outside_name_constraints
from labconsole.security.x509.names import general_name_as_text, malformed, name_as_text, short_name
from labconsole.security.x509.validity import CLOCK_SKEW, Validity

LAB_ROOT_DAYS = 3650


def certify(
    key: PrivateKey,
    issuer: x509.Name,
    public_key: CertificatePublicKeyTypes,
    subject: x509.Name,
    validity: Validity,
    extensions: Extensions,
) -> x509.Certificate:
    """A certificate with exactly these fields, signed with `key`; its serial number is random, 159 bits (4.1.2.2).

    Checks nothing: callers check, since they know what the certificate is for.

    Raises:
        TokenError: `key` is in a token that refuses.
    """
    builder = x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=public_key,
        serial_number=x509.random_serial_number(),
        not_valid_before=validity.not_before.replace(tzinfo=None),
        not_valid_after=validity.not_after.replace(tzinfo=None),
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return builder.sign(key, signing_hash(key))


def subject_key_id(certificate: x509.Certificate) -> x509.SubjectKeyIdentifier:
    """The identifier of a certificate's key, from the certificate, else generated as in RFC 5280, 4.2.1.2 (1)."""
    said = extension_of(certificate.extensions, x509.SubjectKeyIdentifier)
    return said or x509.SubjectKeyIdentifier.from_public_key(certificate.public_key())


def authority_key_id(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """The authorityKeyIdentifier of certificates and CRLs by `issuer` (4.2.1.1)."""
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(subject_key_id(issuer))


def revocation_pointers(crl_url: str, ocsp_url: str) -> Extensions:
    """cRLDistributionPoints and authorityInfoAccess (4.2.1.13, 4.2.2.1) of each URL that is not empty.

    Raises:
        BadInput: a URL is not plain ASCII.
    """
    found: list[tuple[x509.ExtensionType, bool]] = []
    if crl_url:
        point = x509.DistributionPoint([_uri(crl_url)], relative_name=None, reasons=None, crl_issuer=None)
        found.append((x509.CRLDistributionPoints([point]), False))
    if ocsp_url:
        access = x509.AccessDescription(AuthorityInformationAccessOID.OCSP, _uri(ocsp_url))
        found.append((x509.AuthorityInformationAccess([access]), False))
    return tuple(found)


def _uri(url: str) -> x509.UniformResourceIdentifier:
    if not url.isascii() or not url.startswith(("http://", "https://", "ldap://", "ldaps://")):
        raise BadInput(f"{url!r} is not a URL that a certificate can name: write it as in http://host/path, in ASCII.")
    return x509.UniformResourceIdentifier(url)


MALFORMED = "is not a valid host, address, mail address or URI"


def check_path(issuer: x509.Certificate, subject: x509.Name, path_length: int | None) -> None:
    """Refuse another CA below `issuer` beyond its path length; its own name with another key is free (6.1.4)."""
    check_ca_subject(subject)
    allowed = ca_constraints(issuer).path_length
    if allowed is None or subject == issuer.subject:
        return
    if allowed == 0:
        raise BadInput("This CA signs end certificates only (path length 0): choose one that may have CAs below it.")
    if path_length is not None and path_length >= allowed:
        raise BadInput(f"Below this CA, the path length can be at most {allowed - 1}: choose a smaller one.")


def check_limits(
    subject: x509.Name, names: Sequence[x509.GeneralName], authorities: Sequence[x509.Certificate]
) -> None:
    """Refuse names outside the name constraints of the issuer and of those above it."""
    outside = outside_name_constraints(subject, names, authorities)
    if outside is not None:
        name, authority = outside
        raise BadInput(
            f"{general_name_as_text(name)} is outside the names that {short_name(authority)} may certify: "
            "choose a name within them, or another CA."
        )


def check_key(public_key: CertificatePublicKeyTypes) -> None:
    """Refuse a weak key."""
    problem = problem_of(public_key)
    if problem:
        raise BadInput(problem)


def check_ca_subject(subject: x509.Name) -> None:
    """Refuse a CA without a name (4.1.2.6)."""
    if not subject.rdns:
        raise BadInput("A CA needs a subject: name it, as in CN=State A Root,C=SG.")


def check_names(profile: CertificateProfile, names: Sequence[x509.GeneralName]) -> None:
    """Refuse malformed names, and TLS servers without alternative names: clients check no others (RFC 9525)."""
    odd = malformed(names)
    if odd is not None:
        raise BadInput(f"{general_name_as_text(odd)} {MALFORMED}: choose another name.")
    if profile is CertificateProfile.TLS_SERVER and not names:
        raise BadInput("A TLS server needs its host name as an alternative name, as in broker.example: add it.")


def check_key_pair(certificate: x509.Certificate, key: PrivateKey) -> None:
    """Refuse a private key that is not the certificate's."""
    if certificate.public_key() != key.public_key():
        raise BadInput(
            f"The private key is not that of the certificate {short_name(certificate)}: choose the two that belong "
            "together."
        )


def ca_constraints(certificate: x509.Certificate) -> x509.BasicConstraints:
    """The basicConstraints of a CA. Raises BadInput: the certificate is not that of a CA."""
    constraints = extension_of(certificate.extensions, x509.BasicConstraints)
    if constraints is None or not constraints.ca:
        raise BadInput(f"{name_as_text(certificate.subject)} is not a CA, so it issues nothing: choose a CA.")
    return constraints


def within(issuer: x509.Certificate, validity: Validity) -> Validity:
    """`validity`, shortened to the issuer's if it ends up to an hour later; refuse more."""
    end = issuer.not_valid_after_utc
    if validity.not_after > end + CLOCK_SKEW:
        raise BadInput(f"The CA's own certificate ends on {end:%Y-%m-%d}: choose an end before that.")
    return Validity(validity.not_before, min(validity.not_after, end))


@dataclass(frozen=True)
class Issuer:
    """A CA's certificate with its private key (in memory, or in a token).

    `chain` holds the certificates above its own, the root last; nothing for a root.

    Raises:
        BadInput: the key is not that of the certificate.
    """

    certificate: x509.Certificate
    key: PrivateKey
    chain: tuple[x509.Certificate, ...] = ()

    def __post_init__(self) -> None:
        check_key_pair(self.certificate, self.key)


def issue_root(
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
        name_constraints: permitted names, as in `name_constraints.limits`; empty: any name.

    Raises:
        BadInput: the subject is empty; a weak key.
        TokenError: the key is in a token that refuses.
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
    """An end certificate without any CA, for peers to pin by its fingerprint.

    Raises:
        BadInput: the profile is that of a CA, does not fit the type of key, or lacks a name; a weak key.
        TokenError: the key is in a token that refuses.
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
    """A certificate for `public_key` by `issuer`, with a random serial number of its own.

    `names` go into subjectAltName; `crl_url` and `ocsp_url` are where peers read whether it is revoked.
    `name_constraints` and `path_length` are for an intermediate CA, as in `issue_root`. If the certificate would end up
    to an hour after the issuer's own, it ends with that.

    Raises:
        BadInput: the issuer may not issue that (it is not a CA, its path length, its name constraints, it ends
            earlier), the profile does not fit the type of key, or lacks a name; a weak key.
        TokenError: the issuer's key is in a token that refuses.
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
        *revocation_pointers(crl_url, ocsp_url),
    )
    if profile in AUTHORITIES:
        check_path(issuer.certificate, subject, path_length)
    key_id = x509.SubjectKeyIdentifier.from_public_key(public_key)
    return issue_with_extensions(issuer, public_key, subject, validity, ((key_id, False), *extensions))


def issue_with_extensions(
    issuer: Issuer,
    public_key: CertificatePublicKeyTypes,
    subject: x509.Name,
    validity: Validity,
    extensions: Extensions,
) -> x509.Certificate:
    """A certificate by `issuer` with these extensions and its authorityKeyIdentifier; names are not checked.

    Raises:
        BadInput: the issuer is not a CA or its certificate ends earlier; a weak key.
        TokenError: the issuer's key is in a token that refuses.
    """
    ca_constraints(issuer.certificate)
    check_key(public_key)
    validity = within(issuer.certificate, validity)
    extensions = ((authority_key_id(issuer.certificate), False), *extensions)
    return certify(issuer.key, issuer.certificate.subject, public_key, subject, validity, extensions)


def lab_name(common_name: str) -> x509.Name:
    """The name of a CA or identity that the console creates by itself: O=Lab Console, CN of at most 64 characters."""
    organisation = x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Lab Console")
    return x509.Name([organisation, x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])])


def issue_lab_root(key: PrivateKey, common_name: str) -> x509.Certificate:
    """A root for ten years, named by `lab_name`, that issues end certificates only.

    Raises:
        TokenError: the key is in a token that refuses.
    """
    return issue_root(key, lab_name(common_name), Validity.for_days(LAB_ROOT_DAYS), path_length=0)


def cross_certificate(
    issuer: Issuer,
    other: x509.Certificate,
    validity: Validity,
    *,
    name_constraints: Sequence[x509.GeneralName] = (),
    path_length: int | None = None,
) -> x509.Certificate:
    """A certificate by `issuer` for another CA's name and key: who trusts `issuer` then trusts what `other` issues.

    Without `name_constraints` or `path_length` it is limited as `other` itself.

    Raises:
        BadInput: `other` is not a CA, or has no key that gets a certificate; `issuer` may not issue that.
        TokenError: the issuer's key is in a token that refuses.
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
    if other.subject != issuer.certificate.subject:  # its own limits do not apply to itself under another key (6.1.4)
        check_limits(other.subject, (), (issuer.certificate, *issuer.chain))
    extensions = ((subject_key_id(other), False), *extensions)
    return issue_with_extensions(issuer, public_key, other.subject, validity, extensions)


def link_certificates(old: Issuer, new: Issuer) -> tuple[x509.Certificate, x509.Certificate]:
    """The link certificates between two roots of a State: old with new, new with old (RFC 9810, 4.4).

    Who trusts one root trusts the other through them. "Old with new" is the old key certified by the new one, for as
    long as the old root is valid; "new with old" the new key certified by the old one, from the new root's beginning
    until the old one's end.

    Raises:
        BadInput: the two are never valid at the same time, or one may not certify the other.
        TokenError: a key is in a token that refuses.
    """
    end = min(old.certificate.not_valid_after_utc, new.certificate.not_valid_after_utc)
    if end <= max(old.certificate.not_valid_before_utc, new.certificate.not_valid_before_utc):
        raise BadInput(
            "The old and the new CA are never valid at the same time: create the new one before the old one expires."
        )
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


def _limited_to(names: Sequence[x509.GeneralName]) -> Extensions:
    return ((limits(names), True),) if names else ()
