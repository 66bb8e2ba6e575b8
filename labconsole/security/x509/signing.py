"""The one place where a certificate gets its serial number and its signature, and what certificates say of others."""

from __future__ import annotations

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import AuthorityInformationAccessOID

from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.certificate_profiles import Extensions
from labconsole.security.x509.extensions import extension_of
from labconsole.security.x509.key_types import PrivateKey, signing_hash
from labconsole.security.x509.validity import Validity


def certify(
    key: PrivateKey,
    issuer: x509.Name,
    public_key: CertificatePublicKeyTypes,
    subject: x509.Name,
    validity: Validity,
    extensions: Extensions,
) -> x509.Certificate:
    """A certificate with exactly these fields, signed with `key`; its serial number is random, 159 bits (4.1.2.2).

    Checks nothing: that is done where it is known what the certificate is for.

    Raises:
        TokenError: `key` lies in a token that refuses.
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
    """The identifier of a certificate's key as the certificate says it, else as RFC 5280, 4.2.1.2 (1) makes it."""
    said = extension_of(certificate.extensions, x509.SubjectKeyIdentifier)
    return said or x509.SubjectKeyIdentifier.from_public_key(certificate.public_key())


def authority_key_id(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """What certificates and CRLs of `issuer` say of its key (4.2.1.1)."""
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(subject_key_id(issuer))


def where_revoked(crl_url: str, ocsp_url: str) -> Extensions:
    """cRLDistributionPoints and authorityInfoAccess (4.2.1.13, 4.2.2.1) of whichever URL is not empty.

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
