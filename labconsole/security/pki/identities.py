"""Identities by name, as files for the processes of a trial: certificate with chain, key, and trust."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.errors import UserError
from labconsole.paths import pki_dir
from labconsole.security.certificate_status import StatusKind, status_of
from labconsole.security.identities import IdentityFiles, TokenIdentity
from labconsole.security.pki.keys import keys_directory
from labconsole.security.pki.known_crls import crls_under
from labconsole.security.pki.records import FileKey, IdentityRecord, TokenKey, TrustKind
from labconsole.security.pki.snapshot import Snapshot, identity_named
from labconsole.security.private_files import write_private
from labconsole.store.errors import MissingDatabaseError

_OF_NO_USE = frozenset({StatusKind.REVOKED, StatusKind.EXPIRED, StatusKind.NOT_YET_VALID})
_NO_FILE_NAME = re.compile(r"[^A-Za-z0-9.-]")


def names(directory: Path | None = None) -> tuple[str, ...]:
    """The names of all identities, in order; none where there is no database yet. Raises StoreError."""
    from labconsole.security.pki.reader import PkiReader

    try:
        with PkiReader.open(directory) as reader:
            return tuple(identity.name for identity in reader.identities())
    except MissingDatabaseError:
        return ()


class NamedIdentities:
    """The identities of a database as they are at one moment, read once for all that a trial takes."""

    def __init__(self, directory: Path | None = None, *, in_use: Snapshot | None = None) -> None:
        """Read the database of `directory` (the user's own where none is named). Raises StoreError: there is none.

        `in_use` is a snapshot of it for processes that have the identities already: whether they are still of use is
        for the other ends to judge.
        """
        self._directory = directory or pki_dir()
        self._in_use = in_use is not None
        self._snapshot = in_use or _read(self._directory)

    @property
    def directory(self) -> Path:
        """The directory of the database."""
        return self._directory

    @property
    def snapshot(self) -> Snapshot:
        """The database at that moment."""
        return self._snapshot

    def files(self, name: str) -> IdentityFiles:
        """The files of the identity `name`: its State's roots and all that the State trusts are its trust.

        The files never change under a trial that uses them: what is new has other names.

        Raises:
            UserError: there is no such identity, its certificate is revoked, expired or not yet valid, its key is
                in a token, or files cannot be written.
        """
        return files_of(self.usable(name), self._snapshot, self._directory)

    def certificate(self, name: str) -> Path:
        """The PEM file of the certificate of `name` and its chain, wherever its key is. Raises UserError."""
        return _chain_file(self.usable(name), self._snapshot, self._directory)

    def token_identity(self, name: str) -> TokenIdentity | None:
        """The identity `name`, whose key signs in a token; None where its key is in a file. Raises UserError."""
        identity = identity_named(name, self._snapshot.identities)
        place = _place_of(identity, self._snapshot)
        if not isinstance(place, TokenKey):
            return None
        return TokenIdentity(certificate=self.certificate(name), token=place.token, label=place.label)

    def usable(self, name: str) -> IdentityRecord:
        """The identity `name`. Raises UserError: there is none, or its certificate is of no use."""
        identity = identity_named(name, self._snapshot.identities)
        record = self._snapshot.certificate_by_id[identity.certificate]
        status = status_of(record, self._snapshot, datetime.now(UTC))
        if status.kind in _OF_NO_USE and not self._in_use:
            raise UserError(
                f"The certificate of the identity {name} is of no use. {status.cause} Give its name to another "
                "certificate on the page Certificates."
            )
        return identity


def _read(directory: Path) -> Snapshot:
    # Imported late, with SQLAlchemy: a run with files or without TLS opens no certificate database.
    from labconsole.security.pki.reader import PkiReader

    with PkiReader.open(directory) as reader:
        return reader.snapshot()


def files_of(identity: IdentityRecord, snapshot: Snapshot, directory: Path) -> IdentityFiles:
    """The files of an identity in `snapshot` of the database in `directory`, as `NamedIdentities.files`."""
    place = _place_of(identity, snapshot)
    if not isinstance(place, FileKey):
        raise UserError(
            f"The key of the identity {identity.name} is in a token, and TLS needs a key file: choose another identity."
        )
    trusted = [
        one
        for kind in (TrustKind.ROOT, TrustKind.PIN)
        for one in snapshot.trusted_by(identity.state, kind)
        if one.revoked is None  # roots are not revoked by a CRL
    ]
    crls = crls_under(snapshot, trusted)
    state = snapshot.state_by_id[identity.state].name
    source = place.source.relative_to(keys_directory(directory))
    return IdentityFiles(
        certificate=_chain_file(identity, snapshot, directory),
        key=keys_directory(directory) / place.file,
        trust=_written(directory, f"{state}.trust", [one.certificate for one in trusted]) if trusted else None,
        crls=_written(directory, f"{state}.crls", crls) if crls else None,
        passphrase_file=source.passphrase_file,
        keyring_entry=source.keyring_entry or "",
    )


def _place_of(identity: IdentityRecord, snapshot: Snapshot) -> FileKey | TokenKey | None:
    """Where the private key of an identity is; None: not on this console."""
    record = snapshot.certificate_by_id[identity.certificate]
    return snapshot.key_by_id[record.key].place if record.key is not None else None


def _chain_file(identity: IdentityRecord, snapshot: Snapshot, directory: Path) -> Path:
    """The PEM file of an identity's certificate and its chain."""
    record = snapshot.certificate_by_id[identity.certificate]
    chain = snapshot.presented_chain(record, datetime.now(UTC))
    return _written(directory, identity.name, [one.certificate for one in (record, *chain)])


def _written(directory: Path, name: str, objects: Iterable[x509.Certificate | x509.CertificateRevocationList]) -> Path:
    """A PEM file with these certificates or CRLs, never changed once written: `name` is for people."""
    data = b"".join(one.public_bytes(Encoding.PEM) for one in objects)
    file = f"{_NO_FILE_NAME.sub('_', name)}-{hashlib.sha256(data).hexdigest()[:16]}.pem"
    path = directory / "identities" / file
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if not path.exists():
            write_private(path, data)
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror or error}): check the disk.") from error
    return path
