"""Certificates that the console makes by itself in its database: by one process at a time, each with its key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from filelock import FileLock, Timeout

from labconsole.errors import UserError
from labconsole.security.pki.keys import MadeKey
from labconsole.security.pki.records import CertificateRecord, Origin, State
from labconsole.security.x509.certificate_profiles import CertificateProfile

if TYPE_CHECKING:
    from labconsole.security.pki.change import Change

_LOCK_TIMEOUT_S = 60.0


@contextmanager
def creating_alone(directory: Path, lock: str, what: str) -> Iterator[None]:
    """No other process holds `lock` of the database in `directory` in the block, which creates `what`.

    Raises UserError: another process does not finish, or a file cannot be written.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(directory / lock, timeout=_LOCK_TIMEOUT_S, mode=0o600):
            yield
    except Timeout as error:
        raise UserError(
            f"Another process has been creating {what} in {directory} for {_LOCK_TIMEOUT_S:.0f} s: end it."
        ) from error
    except OSError as error:
        raise UserError(f"The {what} cannot be created in {directory}: {error.strerror or error}.") from error


def state_called(change: Change, name: str) -> State:
    """The State of that name, added where there is none. Raises StoreError."""
    found = next((state for state in change.snapshot().states if state.name == name), None)
    return found or change.add_state(name)


def add_with_key(
    change: Change,
    state: State,
    label: str,
    key: MadeKey,
    certificate: x509.Certificate,
    profile: CertificateProfile | None,
) -> CertificateRecord:
    """Add a certificate of `state` and its key, which is called `label`. Raises StoreError, BadInput."""
    replace(key, label=label).record(change, state)
    origin = Origin.SELF_SIGNED if profile is CertificateProfile.ROOT else Origin.ISSUED
    return change.add_certificate(certificate, origin=origin, state=state.id, profile=profile)
