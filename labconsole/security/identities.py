"""An identity: certificate with chain, private key, and where its passphrase comes from, loaded from files."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from labconsole.errors import UserError
from labconsole.security.secrets import Prompt, Secret, SecretSource

if TYPE_CHECKING:
    from cryptography import x509

    from labconsole.security.x509.key_types import PrivateKey


class IdentityFiles(BaseModel):
    """The files of an identity; contains no secret, so it may be passed to any process as JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    certificate: Path = Field(title="Certificate", description="PEM file: the certificate, then its intermediates.")
    key: Path = Field(title="Private key", description="PEM file, best encrypted; readable by its owner alone (0600).")
    trust: Path | None = Field(
        default=None,
        title="Trusted CAs",
        description="PEM file with the CA certificates against which peers are checked.",
    )
    crls: Path | None = Field(
        default=None,
        title="CRLs",
        description="PEM file with the CRLs of these CAs; not given: no peer's certificate counts as revoked.",
    )
    passphrase_file: Path | None = Field(
        default=None,
        title="Passphrase file",
        description="File with the key's passphrase, readable by its owner alone (0600); the OS keyring comes first.",
    )
    keyring_entry: str | None = Field(
        default=None,
        title="Keyring entry",
        description="Entry of the OS keyring; not given: the path of the key file; empty: the keyring is not asked.",
    )

    @property
    def secret_source(self) -> SecretSource:
        """Where the passphrase of the key comes from."""
        entry = str(self.key.absolute()) if self.keyring_entry is None else self.keyring_entry
        return SecretSource(keyring_entry=entry or None, passphrase_file=self.passphrase_file)


class TokenIdentity(BaseModel):
    """An identity whose private key is in a PKCS#11 token, which it never leaves; contains no PIN."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    certificate: Path
    """PEM file: the certificate, then its intermediates."""
    token: str
    """Name of the token (`labconsole hsm tokens`)."""
    label: str
    """CKA_LABEL of the key."""


@dataclass(frozen=True)
class LoadedIdentity:
    """A loaded identity. `chain` are the intermediates after `certificate`; `secret` is None for an open key file.

    `notes` are sentences that the operator must see (expired certificate, key not encrypted). `private_key` is the key
    that was checked with the certificate.
    """

    name: str
    files: IdentityFiles
    certificate: x509.Certificate
    chain: tuple[x509.Certificate, ...]
    secret: Secret | None
    notes: tuple[str, ...]
    private_key: PrivateKey = field(repr=False, compare=False)

    @property
    def certificate_file(self) -> Path:
        """PEM file with certificate and intermediates."""
        return self.files.certificate

    @property
    def key_file(self) -> Path:
        """PEM file with the private key."""
        return self.files.key


def load_identity(files: IdentityFiles, name: str, prompt: Prompt | None = None) -> LoadedIdentity:
    """Load and check the identity called `name` in messages. An expired certificate is loaded, and noted.

    Raises:
        UserError: a file is missing, unreadable or not what it should be, the key file is open to others, the
            passphrase is wrong or not available, or key and certificate do not belong together.
    """
    from labconsole.security.key_files import is_encrypted, load_private_key

    certificate, *chain = load_certificates(files.certificate)
    if files.trust is not None:
        load_certificates(files.trust)
    secret = files.secret_source.resolve(f"the key of {name}, {files.key}", prompt) if is_encrypted(files.key) else None
    key = load_private_key(files.key, secret)
    if key.public_key() != certificate.public_key():
        raise UserError(f"The key {files.key} does not belong to the certificate {files.certificate}: name a pair.")
    notes = _notes(name, files, certificate, secret)
    return LoadedIdentity(name, files, certificate, tuple(chain), secret, notes, key)


def load_certificates(path: Path) -> list[x509.Certificate]:
    """The certificates in a file, at least one, in the file's order. Raises UserError."""
    # Imported late, with asn1crypto, pyOpenSSL and `cryptography.x509`: a role without TLS has no identity.
    from labconsole.security.x509.parsing import read_certificates, read_file

    return list(read_certificates(read_file(path, "certificate file"), f"The certificate file {path}"))


def require_valid(identity: LoadedIdentity, owner: str) -> None:
    """Raises UserError if the certificate of `owner` is not valid now: a peer would refuse it."""
    problem = validity_problem(identity.certificate, datetime.now(UTC))
    if problem is not None:
        raise UserError(f"The certificate of {owner}, {identity.certificate_file}, {problem}: use a valid one.")


def validity_problem(certificate: x509.Certificate, at: datetime) -> str | None:
    """Why `certificate` is not valid at time `at` (aware), as in "expired on 2025-05-23", or None if it is."""
    if at > certificate.not_valid_after_utc:
        return f"expired on {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    if at < certificate.not_valid_before_utc:
        return f"is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
    return None


def _notes(name: str, files: IdentityFiles, certificate: x509.Certificate, secret: Secret | None) -> tuple[str, ...]:
    notes = []
    problem = validity_problem(certificate, datetime.now(UTC))
    if problem is not None:
        notes.append(f"The certificate of {name} {problem}: peers will refuse it.")
    if secret is None:
        notes.append(f"The key file {files.key} is not encrypted.")
    return tuple(notes)
