"""The CA that certifies each request's key: its own key in software, as in the source, or in the token."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from filelock import FileLock

from labconsole import paths
from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.opening import Token
from labconsole.security.token.cryptoki.private_keys import find_private_key
from labconsole.security.token.errors import KeyMissingError
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.x509.certificate_profiles import Extensions
from labconsole.security.x509.issuing import make_root
from labconsole.security.x509.signing import authority_key_id, certify
from labconsole.security.x509.validity import CLOCK_SKEW, Validity
from labconsole_keypool.device.authority_files import load_or_make
from labconsole_keypool.messages.certificate_fields import CertificateFields

_LABEL = "labconsole signing CA"
_LOCK_TIMEOUT_S = 60.0
_AUTHORITY_DAYS = 3650
_LIFE = timedelta(days=365)
_SIGNS_DOCUMENTS = x509.KeyUsage(
    digital_signature=True,
    content_commitment=True,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=False,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)
"""keyUsage (RFC 5280, 4.2.1.3) of somebody who signs documents."""


class Authority:
    """A CA: its private key, its certificate, and the certificates it issues (RFC 5280).

    `chain` is the CA's certificate, and those above it: none, for it signed its own.
    """

    def __init__(self, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self.chain = (certificate,)
        self._key = key
        self._issuer = certificate.subject
        self._own_extensions: Extensions = (
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (_SIGNS_DOCUMENTS, True),
            (authority_key_id(certificate), False),
        )

    @classmethod
    def of_lab(cls, home: Path | None = None) -> Self:
        """The console's own CA with a P-256 key in software; made on first use, never asks anybody.

        Raises:
            UserError: it is damaged, or cannot be made.
        """
        return cls(*load_or_make(paths.data_dir(home) / "signing-ca", self_signed))

    @classmethod
    def in_token(cls, token: Token, home: Path | None = None) -> Self:
        """A CA whose P-256 key lies in `token` and never leaves it; made on first use, its certificate at each.

        Raises:
            TokenError: the token cannot make or find the key.
        """
        session = token.session()
        with FileLock(paths.tokens_dir(home) / f".ca-{token.identity.serial}.lock", timeout=_LOCK_TIMEOUT_S):
            try:
                key = find_private_key(session, _LABEL)
            except KeyMissingError:
                generate(session, KeyKind.P_256, extractable=False, label=_LABEL, stored=True)
                key = find_private_key(session, _LABEL)
        return cls(key, self_signed(key, f"Lab Signing CA in {token.identity.label} {token.identity.serial}"))

    def issue(self, csr: x509.CertificateSigningRequest, fields: CertificateFields) -> x509.Certificate:
        """A certificate for the key of `csr`, with the fields of the sign request. May be called by several threads.

        Raises:
            InvalidSignature: whoever made `csr` does not have its private key.
            TokenError: the CA's key lies in a token that refuses.
        """
        if not csr.is_signature_valid:
            raise InvalidSignature("The CSR was not signed with the private key of its public key.")
        now = datetime.now(UTC)
        extensions = (*self._own_extensions, *fields.extensions)
        validity = Validity(now - CLOCK_SKEW, now + _LIFE)
        return certify(self._key, self._issuer, csr.public_key(), fields.subject, validity, extensions)


def self_signed(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, name: str) -> x509.Certificate:
    """The certificate of a CA that signs end certificates only. Raises TokenError where `key` lies in a token."""
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Lab Console"),
            x509.NameAttribute(NameOID.COMMON_NAME, name[:64]),
        ]
    )
    return make_root(key, subject, Validity.for_days(_AUTHORITY_DAYS), path_length=0)
