"""Issues the certificates of a throw-away lab CA, as RFC 5280 says: for identities that the console makes itself."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

RSA_BITS = 2048
"""As in the source's tool; the paper itself names no algorithm."""

_LAB_DOMAIN = "lab.test"  # reserved for tests by RFC 6761
_LOOPBACK = (ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1"))
_CLOCK_SKEW = timedelta(hours=1)


class Purpose(StrEnum):
    """What an end certificate is for."""

    STATE = "state"
    """TLS client; signs messages, and messages are encrypted to it."""
    SERVER = "server"
    """TLS server on this machine: localhost, 127.0.0.1, ::1."""


@dataclass(frozen=True)
class Validity:
    """From when until when a certificate is valid; both aware, UTC."""

    not_before: datetime
    not_after: datetime

    @classmethod
    def for_days(cls, days: int) -> Self:
        """From an hour ago (clocks differ) for `days` days."""
        now = datetime.now(UTC).replace(microsecond=0)
        return cls(now - _CLOCK_SKEW, now + timedelta(days=days))


@dataclass(frozen=True)
class LabAuthority:
    """A self-signed lab CA: its certificate and its private key in memory."""

    certificate: x509.Certificate
    key: rsa.RSAPrivateKey

    @classmethod
    def create(cls, common_name: str, validity: Validity) -> Self:
        """Make a key and a self-signed CA certificate that may sign end certificates and CRLs only."""
        key = new_key()
        name = _name(common_name)
        usage = _key_usage(key_cert_sign=True, crl_sign=True)
        certificate = (
            _builder(name, name, key.public_key(), validity)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    def issue(
        self, common_name: str, public_key: rsa.RSAPublicKey, purpose: Purpose, validity: Validity
    ) -> x509.Certificate:
        """Sign an end certificate for `public_key`; `common_name` must be a DNS label, as in state-a."""
        issuer_key_id = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        builder = (
            _builder(_name(common_name), self.certificate.subject, public_key, validity)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_key_id), critical=False
            )
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        )
        names: list[x509.GeneralName]
        match purpose:
            case Purpose.STATE:
                usage = _key_usage(digital_signature=True, content_commitment=True, key_encipherment=True)
                extended = ExtendedKeyUsageOID.CLIENT_AUTH
                names = [x509.DNSName(f"{common_name}.{_LAB_DOMAIN}")]
            case Purpose.SERVER:
                usage = _key_usage(digital_signature=True, key_encipherment=True)
                extended = ExtendedKeyUsageOID.SERVER_AUTH
                names = [x509.DNSName("localhost"), *map(x509.IPAddress, _LOOPBACK)]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        builder = builder.add_extension(usage, critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([extended]), critical=False)
        return builder.sign(self.key, hashes.SHA256())


def new_key() -> rsa.RSAPrivateKey:
    """A fresh RSA key; takes about 0.1 s."""
    return rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)


def _name(common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Lab Console"),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: rsa.RSAPublicKey, validity: Validity
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(validity.not_before)
        .not_valid_after(validity.not_after)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _key_usage(
    *,
    digital_signature: bool = False,
    content_commitment: bool = False,
    key_encipherment: bool = False,
    key_cert_sign: bool = False,
    crl_sign: bool = False,
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=content_commitment,
        key_encipherment=key_encipherment,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )
