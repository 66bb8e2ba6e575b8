"""Identities for tests, good ones and deliberately bad ones: expired, not yet valid, of a foreign CA."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.security.identities import IdentityFiles
from labconsole.security.keyfile import save_private_key
from labconsole.security.lab_authority import LabAuthority, Purpose, Validity, new_key
from labconsole.security.private_files import write_private
from labconsole.security.secrets import Secret

_NOW = datetime.now(UTC).replace(microsecond=0)
VALID = Validity.for_days(30)
EXPIRED = Validity(_NOW - timedelta(days=60), _NOW - timedelta(days=30))
NOT_YET_VALID = Validity(_NOW + timedelta(days=30), _NOW + timedelta(days=60))


def foreign_authority() -> LabAuthority:
    """A CA that nobody trusts."""
    return LabAuthority.create("Foreign CA", Validity.for_days(60))


def write_identity(
    directory: Path,
    name: str,
    authority: LabAuthority,
    purpose: Purpose = Purpose.STATE,
    validity: Validity = VALID,
    trust: Path | None = None,
) -> IdentityFiles:
    """Write certificate, encrypted key and passphrase file of `name` into `directory`; nothing asks the keyring.

    `trust` defaults to the certificate of `authority`, which is written too.
    """
    key = new_key()
    secret = Secret(f"passphrase of {name}")
    certificate = authority.issue(name, key.public_key(), purpose, validity)
    if trust is None:
        trust = directory / f"{name}.trust.pem"
        trust.write_bytes(authority.certificate.public_bytes(Encoding.PEM))
    files = IdentityFiles(
        certificate=directory / f"{name}.pem",
        key=directory / f"{name}.key.pem",
        trust=trust,
        passphrase_file=directory / f"{name}.passphrase",
        keyring_entry="",
    )
    files.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
    save_private_key(files.key, key, secret)
    write_private(directory / f"{name}.passphrase", secret.reveal().encode())
    return files
