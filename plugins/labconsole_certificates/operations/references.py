"""What people type for a State, certificate, request or CA, and the record that it means."""

from __future__ import annotations

from datetime import datetime

from labconsole.security.pki.reader import Snapshot

from labconsole.security.pki.records import CertificateRecord, RequestRecord, State


def state_named(snapshot: Snapshot, name: str) -> State:
    """The State called `name`. Raises TrialError: there is none."""
    raise NotImplementedError


def local_state_named(snapshot: Snapshot, name: str) -> State:
    """The State called `name`, whose keys lie here. Raises TrialError: there is none, or it is another console's."""
    raise NotImplementedError


def certificate_named(snapshot: Snapshot, reference: str) -> CertificateRecord:
    """The certificate with this SHA-256 fingerprint, or its beginning (8 hex digits or more; blanks, colons and case
    do not matter), removed ones included. Raises TrialError: none, or several begin so."""
    raise NotImplementedError


def request_numbered(snapshot: Snapshot, number: int) -> RequestRecord:
    """The request with this number. Raises TrialError."""
    raise NotImplementedError


def authorities_of(snapshot: Snapshot, state: State, at: datetime) -> tuple[CertificateRecord, ...]:
    """The CA certificates with which `state` can issue here at `at`: key here, not removed, not revoked, valid.

    The one to take first stands first: intermediates before roots, newest before older; a root whose rotation has
    switched comes after its successor.
    """
    raise NotImplementedError


def authority_of(snapshot: Snapshot, state: State, reference: str, at: datetime) -> CertificateRecord:
    """The CA certificate meant by `reference` (fingerprint; empty: the first of `authorities_of`).

    Raises TrialError: `state` has none that can issue at `at`, and why (expired, revoked, no key here).
    """
    raise NotImplementedError
