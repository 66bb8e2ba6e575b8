"""The lab's own identities: a CA, State A, State B and a broker, made on first use so that no trial has to ask.

They lie in `<directory>/lab-0001`, `lab-0002` and so on; the newest counts. A set is made in a directory of another
name and gets its own by one rename, under a lock: two processes make one set, and one killed in the middle leaves
nothing that is ever used. A set that no longer serves (expired, damaged, its secret gone) is followed by a new one;
the old one stays, since a run may still use it.
"""

from __future__ import annotations

import secrets
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from filelock import FileLock, Timeout
from pydantic import ValidationError

from labconsole.security.identities import (
    Identity,
    IdentityFiles,
    load_certificates,
    load_identity,
    validity_problem,
)
from labconsole.security.keyfile import save_private_key
from labconsole.security.lab_authority import LabAuthority, Purpose, Validity, new_key
from labconsole.security.private_files import read_private, write_private
from labconsole.security.secrets import Secret, SecretSource, keep_secret
from labconsole.trial import TrialError

AUTHORITY = "lab-ca"
STATE_A = "state-a"
STATE_B = "state-b"
BROKER = "broker"

_PURPOSES = {STATE_A: Purpose.STATE, STATE_B: Purpose.STATE, BROKER: Purpose.SERVER}
_AUTHORITY_DAYS = 3650
_IDENTITY_DAYS = 365
_LONGEST_RUN = timedelta(days=1)
_LOCK_TIMEOUT_S = 60.0
_SOURCE_FILE = "secret-source.json"
_PASSPHRASE_FILE = "passphrase"


@dataclass(frozen=True)
class LabIdentities:
    """A complete set in `directory`. `notes` tell the operator what was made, why, and where the secret lies."""

    directory: Path
    secret_source: SecretSource
    notes: tuple[str, ...] = ()

    @property
    def authority_file(self) -> Path:
        """PEM file with the lab CA's certificate."""
        return self.directory / f"{AUTHORITY}.pem"

    def files(self, name: str) -> IdentityFiles:
        """The files of identity `name` (STATE_A, STATE_B, BROKER), to hand to the process that loads them.

        Raises:
            TrialError: there is no such lab identity.
        """
        if name not in _PURPOSES:
            raise TrialError(f"There is no lab identity {name}: choose one of {', '.join(_PURPOSES)}.")
        return IdentityFiles(
            certificate=self.directory / f"{name}.pem",
            key=self.directory / f"{name}.key.pem",
            trust=self.authority_file,
            passphrase_file=self.secret_source.passphrase_file,
            keyring_entry=self.secret_source.keyring_entry or "",
        )

    def identity(self, name: str) -> Identity:
        """Load identity `name`. Raises TrialError."""
        return load_identity(self.files(name), name)


def lab_identities(directory: Path) -> LabIdentities:
    """The lab identities in `directory`, made there if there are none that serve (about 0.5 s). Never asks anybody.

    Raises:
        TrialError: they cannot be made, or another process makes them and does not come to an end.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(directory / ".lock", timeout=_LOCK_TIMEOUT_S, mode=0o600):
            newest = max(directory.glob("lab-[0-9][0-9][0-9][0-9]"), default=None)
            if newest is None:
                return _make(directory, 1, "The lab identities were made.")
            problem = _problem(newest)
            if problem is None:
                return LabIdentities(newest, _source(newest))
            return _make(directory, int(newest.name[-4:]) + 1, f"The lab identities were made anew, since {problem}.")
    except Timeout as error:
        raise TrialError(
            f"Another process has been making lab identities in {directory} for {_LOCK_TIMEOUT_S:.0f} s: end it."
        ) from error
    except OSError as error:
        raise TrialError(f"The lab identities cannot be made in {directory}: {error.strerror or error}.") from error


def _problem(directory: Path) -> str | None:
    """Why the set in `directory` does not serve (completes "since ..."), or None."""
    try:
        _source(directory).resolve("the lab identities")
        for name in (AUTHORITY, *_PURPOSES):
            certificate = load_certificates(directory / f"{name}.pem")[0]
            read_private(directory / f"{name}.key.pem", "key file")
            problem = _not_valid_throughout(certificate)
            if problem is not None:
                return f"the certificate of {name} {problem}"
    except TrialError as error:
        return f"the old ones do not serve any more ({str(error).rstrip('.')})"
    return None


def _not_valid_throughout(certificate: x509.Certificate) -> str | None:
    now = datetime.now(UTC)
    return validity_problem(certificate, now) or validity_problem(certificate, now + _LONGEST_RUN)


def _source(directory: Path) -> SecretSource:
    """Where the set's secret lies; a passphrase file lies beside the keys, wherever the set was moved to."""
    try:
        source = SecretSource.model_validate_json(read_private(directory / _SOURCE_FILE, "secret reference"))
    except ValidationError as error:
        raise TrialError(f"The secret reference {directory / _SOURCE_FILE} is damaged.") from error
    return source.beside(directory)


def _make(directory: Path, number: int, why: str) -> LabIdentities:
    """Make set `number`; the caller holds the lock. Raises OSError."""
    for left_over in directory.glob(".making-*"):
        shutil.rmtree(left_over)
    tag = secrets.token_hex(4)
    making = directory / f".making-{tag}"
    making.mkdir(mode=0o700)
    secret = Secret(secrets.token_urlsafe(32))
    source = keep_secret(making, _PASSPHRASE_FILE, secret, f"lab-identities-{tag}")
    write_private(making / _SOURCE_FILE, source.model_dump_json().encode())
    authority = LabAuthority.create(f"Lab CA {tag}", Validity.for_days(_AUTHORITY_DAYS))
    save_private_key(making / f"{AUTHORITY}.key.pem", authority.key, secret)
    write_private(making / f"{AUTHORITY}.pem", authority.certificate.public_bytes(Encoding.PEM))
    for name, purpose in _PURPOSES.items():
        key = new_key()
        certificate = authority.issue(name, key.public_key(), purpose, Validity.for_days(_IDENTITY_DAYS))
        save_private_key(making / f"{name}.key.pem", key, secret)
        write_private(making / f"{name}.pem", certificate.public_bytes(Encoding.PEM))
    made = making.rename(directory / f"lab-{number:04d}")
    source = _source(made)
    return LabIdentities(made, source, (why, f"Their passphrase lies {source.describe()}."))
