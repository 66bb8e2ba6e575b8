"""One good file of each kind that comes from outside, with names in many scripts: what damaged copies are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

from labconsole.security.secrets import Secret
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked, issue_crl
from labconsole.security.x509.csrs import create_csr
from labconsole.security.x509.issuing import Issuer, issue, issue_root
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.names import general_name_from_text, name_from_text
from labconsole.security.x509.validity import Validity
from tests.helpers.x509_keys import key_of

PASSWORD = Secret("x")
_NAMES = [
    general_name_from_text(text)
    for text in ("bücher.caas.gov.sg", "192.0.2.1", "URI:http://a.example/", "用户@例え.jp", "DIR:CN=根,C=CN")
]


@dataclass(frozen=True)
class Samples:
    """A CA, a certificate of it, and the files in DER by their kind."""

    authority: Issuer
    certificate: x509.Certificate
    files: Mapping[str, bytes]

    @classmethod
    def made(cls) -> Self:
        """New ones, of the same keys each time."""
        key, root_key = key_of(KeyType.P_384), key_of(KeyType.P_256)
        subject = name_from_text("CN=根,O=สำนักงานการบินพลเรือนแห่งประเทศไทย,C=TH")
        root = issue_root(root_key, subject, Validity.for_days(60), name_constraints=_NAMES[:1])
        authority = Issuer(root, root_key)
        certificate = issue(
            authority,
            key.public_key(),
            name_from_text("CN=broker,C=TH"),
            _NAMES[:1],
            CertificateProfile.TLS_SERVER,
            Validity.for_days(30),
            crl_url="http://crl.example/a.crl",
            ocsp_url="http://ocsp.example/",
        )
        csr = create_csr(key, name_from_text("CN=broker,C=TH"), _NAMES, CertificateProfile.TLS_SERVER)
        revoked = [Revoked(certificate.serial_number, datetime.now(UTC), x509.ReasonFlags.key_compromise)]
        quick = PrivateFormat.PKCS12.encryption_builder().kdf_rounds(1)
        protection = quick.key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC).build(PASSWORD.reveal().encode())
        files = {
            "root": root.public_bytes(Encoding.DER),
            "certificate": certificate.public_bytes(Encoding.DER),
            "csr": csr.public_bytes(Encoding.DER),
            "crl": issue_crl(authority, revoked, 1, Validity.for_days(3)).public_bytes(Encoding.DER),
            "pkcs12": pkcs12.serialize_key_and_certificates(b"broker", key, certificate, [root], protection),
            "open-pkcs12": pkcs12.serialize_key_and_certificates(b"broker", key, certificate, None, NoEncryption()),
            "key": key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),
        }
        return cls(authority, certificate, files)
