"""The CA that issues a certificate for each request: its own key in software, as in the source, or in the token."""

from __future__ import annotations

import secrets
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
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
from labconsole.security.x509.issuing import Issuer, issue_lab_root, issue_with_extensions
from labconsole.security.x509.validity import CLOCK_SKEW, Validity
from labconsole_keypool.messages.certificate_fields import CertificateFields

_CERTIFICATE, _KEY, _SOURCE, _PASSPHRASE = "ca.pem", "ca.key.pem", "secret-source.json", "passphrase"
_CREATION_TIMEOUT_S = 60.0


def load_or_create(directory: Path) -> Issuer:
    """The CA in `directory`; its key and certificate are created there if it does not exist.

    Several processes create one CA, and one killed in the middle leaves nothing that is used.

    Raises:
        UserError: it is damaged or has expired, or cannot be made.
    """
    try:
        with FileLock(directory.with_name(f".{directory.name}.lock"), timeout=_CREATION_TIMEOUT_S, mode=0o600):
            if not directory.is_dir():
                _create(directory)
        return _load(directory)
    except Timeout as error:
        raise UserError(
            f"Another process has been creating the signing CA {directory} for {_CREATION_TIMEOUT_S:.0f} s: end it."
        ) from error
    except OSError as error:
        raise UserError(f"The signing CA {directory} cannot be created: {error.strerror or error}.") from error


def _create(directory: Path) -> None:
    making = directory.with_name(f".making-{directory.name}")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(mode=0o700)
    tag = secrets.token_hex(4)
    key = ec.generate_private_key(ec.SECP256R1())
    secret = Secret(secrets.token_urlsafe(32))
    source = keep_secret(making, _PASSPHRASE, secret, f"signing-ca-{tag}")
    write_private(making / _SOURCE, source.model_dump_json().encode())
    save_private_key(making / _KEY, key, secret)
    write_private(making / _CERTIFICATE, issue_lab_root(key, f"Lab Signing CA {tag}").public_bytes(Encoding.PEM))
    making.rename(directory)


def _load(directory: Path) -> Issuer:
    try:
        source = SecretSource.model_validate_json(read_private(directory / _SOURCE, "secret reference"))
        secret = source.relative_to(directory).resolve("the signing CA")
        certificate = load_certificates(directory / _CERTIFICATE)[0]
        issuer = Issuer(certificate, load_private_key(directory / _KEY, secret))
    except ValidationError as error:
        raise UserError(_damage(directory, f"{_SOURCE} is not whole")) from error
    except UserError as error:
        raise UserError(_damage(directory, str(error).rstrip("."))) from error
    problem = validity_problem(certificate, datetime.now(UTC))
    if problem is not None:
        raise UserError(_damage(directory, f"its certificate {problem}"))
    return issuer


def _damage(directory: Path, what: str) -> str:
    return f"The signing CA does not serve ({what}): move {directory} away; then a new one is created."


_LABEL = "labconsole signing CA"
_LOCK_TIMEOUT_S = 60.0
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
"""keyUsage (RFC 5280, 4.2.1.3) of a certificate for signing documents."""
_SIGNER_EXTENSIONS: Extensions = (
    (x509.BasicConstraints(ca=False, path_length=None), True),
    (_SIGNS_DOCUMENTS, True),
)


class SigningCA:
    """A CA: its private key, its certificate, and the certificates it issues (RFC 5280).

    `chain` is the CA's own certificate, which is a root.
    """

    def __init__(self, issuer: Issuer) -> None:
        self.chain = (issuer.certificate,)
        self._issuer = issuer

    @classmethod
    def of_lab(cls, home: Path | None = None) -> Self:
        """The console's own CA with a P-256 key in software; made on first use, never asks anybody.

        Raises:
            UserError: it is damaged, or cannot be made.
        """
        return cls(load_or_create(paths.data_dir(home) / "signing-ca"))

    @classmethod
    def in_token(cls, token: Token, home: Path | None = None) -> Self:
        """A CA whose P-256 key is in `token` and never leaves it; made on first use, its certificate at each.

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
        root = issue_lab_root(key, f"Lab Signing CA in {token.identity.label} {token.identity.serial}")
        return cls(Issuer(root, key))

    def issue(self, csr: x509.CertificateSigningRequest, fields: CertificateFields) -> x509.Certificate:
        """A certificate for the key of `csr`, with the fields of the sign request. May be called by several threads.

        Raises:
            InvalidSignature: the creator of `csr` does not have its private key.
            TokenError: the CA's key is in a token that refuses.
        """
        if not csr.is_signature_valid:
            raise InvalidSignature("The CSR was not signed with the private key of its public key.")
        now = datetime.now(UTC)
        validity = Validity(now - CLOCK_SKEW, now + _LIFE)
        extensions = (*_SIGNER_EXTENSIONS, *fields.extensions)
        return issue_with_extensions(self._issuer, csr.public_key(), fields.subject, validity, extensions)
