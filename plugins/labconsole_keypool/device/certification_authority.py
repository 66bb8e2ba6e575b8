"""The CA that certifies each request's key: its own key in software, as in the source, or in the token."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from filelock import FileLock, Timeout
from pydantic import ValidationError

from labconsole import paths
from labconsole.errors import UserError
from labconsole.security.identities import load_certificates, validity_problem
from labconsole.security.key_files import load_private_key, save_private_key
from labconsole.security.private_files import read_private, write_private
from labconsole.security.secrets import Secret, SecretSource, keep_secret
from labconsole.security.token.cryptoki.key_pairs import generate
from labconsole.security.token.cryptoki.opening import Token
from labconsole.security.token.cryptoki.private_keys import find_private_key
from labconsole.security.token.errors import KeyMissingError
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.x509.certificate_profiles import Extensions
from labconsole.security.x509.issuing import authority_key_id, certify, issue_root
from labconsole.security.x509.validity import CLOCK_SKEW, Validity
from labconsole_keypool.messages.certificate_fields import CertificateFields

_CERTIFICATE, _KEY, _SOURCE, _PASSPHRASE = "ca.pem", "ca.key.pem", "secret-source.json", "passphrase"
_CREATION_TIMEOUT_S = 60.0


def load_or_create(
    directory: Path, certify: Callable[[ec.EllipticCurvePrivateKey, str], x509.Certificate]
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    """The CA's key and certificate in `directory`; both are made there if it does not exist.

    `certify` makes the certificate of a key and a name. Several processes make one CA, and one killed in the middle
    leaves nothing that is used.

    Raises:
        UserError: it is damaged or has expired, or cannot be made.
    """
    try:
        with FileLock(directory.with_name(f".{directory.name}.lock"), timeout=_CREATION_TIMEOUT_S, mode=0o600):
            if not directory.is_dir():
                _make(directory, certify)
        return _load(directory)
    except Timeout as error:
        raise UserError(
            f"Another process has been making the signing CA {directory} for {_CREATION_TIMEOUT_S:.0f} s: end it."
        ) from error
    except OSError as error:
        raise UserError(f"The signing CA {directory} cannot be made: {error.strerror or error}.") from error


def _make(directory: Path, certify: Callable[[ec.EllipticCurvePrivateKey, str], x509.Certificate]) -> None:
    making = directory.with_name(f".making-{directory.name}")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(mode=0o700)
    tag = secrets.token_hex(4)
    key = ec.generate_private_key(ec.SECP256R1())
    secret = Secret(secrets.token_urlsafe(32))
    source = keep_secret(making, _PASSPHRASE, secret, f"signing-ca-{tag}")
    write_private(making / _SOURCE, source.model_dump_json().encode())
    save_private_key(making / _KEY, key, secret)
    write_private(making / _CERTIFICATE, certify(key, f"Lab Signing CA {tag}").public_bytes(Encoding.PEM))
    making.rename(directory)


def _load(directory: Path) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    try:
        source = SecretSource.model_validate_json(read_private(directory / _SOURCE, "secret reference"))
        secret = source.beside(directory).resolve("the signing CA")
        key = load_private_key(directory / _KEY, secret)
        certificate = load_certificates(directory / _CERTIFICATE)[0]
    except ValidationError as error:
        raise UserError(_damage(directory, f"{_SOURCE} is not whole")) from error
    except UserError as error:
        raise UserError(_damage(directory, str(error).rstrip("."))) from error
    problem = validity_problem(certificate, datetime.now(UTC))
    if problem is not None:
        raise UserError(_damage(directory, f"its certificate {problem}"))
    if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        raise UserError(_damage(directory, "its key is not the one of its certificate"))
    return key, certificate


def _damage(directory: Path, what: str) -> str:
    return f"The signing CA does not serve ({what}): move {directory} away; then a new one is made."


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


class SigningCA:
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
        return cls(*load_or_create(paths.data_dir(home) / "signing-ca", self_signed))

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
    return issue_root(key, subject, Validity.for_days(_AUTHORITY_DAYS), path_length=0)
