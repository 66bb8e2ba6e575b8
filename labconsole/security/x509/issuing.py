"""Issues certificates as RFC 5280 says: roots, what CAs certify, self-signed ones, link and cross certificates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509

from labconsole.security.x509.key_types import PrivateKey, PublicKey
from labconsole.security.x509.profiles import CertificateProfile
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
        BadInput: the subject is empty.
        TokenError: the key lies in a token that refuses.
    """
    raise NotImplementedError


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

    `names` go into subjectAltName; `crl_url` and `ocsp_url` tell where its revocation would be read.
    `name_constraints` and `path_length` hold for an intermediate CA, as in `make_root`.

    Raises:
        BadInput: the issuer may not issue that (no CA, path length, it ends earlier), the profile does not fit
            the type of key, or lacks a name; a weak key.
        TokenError: the issuer's key lies in a token that refuses.
    """
    raise NotImplementedError


def make_self_signed(
    key: PrivateKey,
    subject: x509.Name,
    names: Sequence[x509.GeneralName],
    profile: CertificateProfile,
    validity: Validity,
) -> x509.Certificate:
    """An end certificate without any CA, which the other side pins by its fingerprint. Raises as `issue`."""
    raise NotImplementedError


def cross_certificate(
    issuer: Issuer,
    other: x509.Certificate,
    validity: Validity,
    *,
    name_constraints: Sequence[x509.GeneralName] = (),
    path_length: int | None = None,
) -> x509.Certificate:
    """Another CA's name and key certified by `issuer`: whoever trusts `issuer` then trusts what `other` issued.

    Raises as `issue`; BadInput also if `other` is no CA.
    """
    raise NotImplementedError


def link_certificates(old: Issuer, new: Issuer) -> tuple[x509.Certificate, x509.Certificate]:
    """Old with new, new with old (RFC 9810, 4.4): who trusts one of two roots of a State trusts the other through them.

    "Old with new" is the old key certified by the new one, for as long as the old root holds; "new with old" the new
    key certified by the old one, from the new root's beginning until the old one's end.

    Raises as `cross_certificate`; BadInput also if the two never hold at the same time.
    """
    raise NotImplementedError
