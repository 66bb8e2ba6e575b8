"""The files of the console's own signing CA: made once, in a directory that gets its name when it is whole."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from filelock import FileLock, Timeout
from pydantic import ValidationError

from labconsole.errors import UserError
from labconsole.security.identities import load_certificates, validity_problem
from labconsole.security.key_files import load_private_key, save_private_key
from labconsole.security.private_files import read_private, write_private
from labconsole.security.secrets import Secret, SecretSource, keep_secret

_CERTIFICATE, _KEY, _SOURCE, _PASSPHRASE = "ca.pem", "ca.key.pem", "secret-source.json", "passphrase"
_CREATION_TIMEOUT_S = 60.0


def load_or_make(
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
