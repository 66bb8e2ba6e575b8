"""The steps of a rotation, each one change of the database: begin, prepare, adopt, confirm, switch, finish, cancel."""

from __future__ import annotations

from collections.abc import Sequence

from labconsole.security.pki.records import CertificateRecord, RotationRecord, State
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt
from labconsole_certificates.operations.new_keys import NewKey

OVERLAP_DAYS = 30
"""For so long the old one holds beside its successor after the switch, if nobody says otherwise."""


def begin(
    store: PkiStore,
    certificate: CertificateRecord,
    *,
    overlap_days: int = OVERLAP_DAYS,
    peers: Sequence[State] | None = None,
) -> RotationRecord:
    """Plan to replace `certificate`. `peers` must confirm; None: all that trust it itself (`kinds.peers_of`).

    Raises TrialError: it is being rotated already, its key is not here, or it is removed.
    """
    raise NotImplementedError


def prepare(
    store: PkiStore, rotation: RotationRecord, new: NewKey, *, days: int | None = None, prompt: Prompt | None = None
) -> RotationRecord:
    """Make key and successor with the same subject, names and limits; `days`: as long as the old one if None.

    A root gets link certificates both ways. For what another console's State issued, a CSR is made, which then goes
    the way of all CSRs. Raises TrialError: not the time for it, a key does not open; nothing changed.
    """
    raise NotImplementedError


def adopt(store: PkiStore, rotation: RotationRecord) -> RotationRecord:
    """The certificate that came back for the CSR of `prepare` is the successor. Raises TrialError: none came."""
    raise NotImplementedError


def confirm(store: PkiStore, rotation: RotationRecord, peer: State) -> RotationRecord:
    """Note that `peer` says it trusts the successor. Raises TrialError: there is none, or `peer` is no peer of it."""
    raise NotImplementedError


def switch(store: PkiStore, rotation: RotationRecord, *, wait_for_peers: bool = True) -> RotationRecord:
    """Use the successor: identities move to it; CAs issue with it.

    Raises TrialError: no successor, or (unless `wait_for_peers` is False) a peer has not confirmed.
    """
    raise NotImplementedError


def finish(store: PkiStore, rotation: RotationRecord, *, wait_for_overlap: bool = True) -> RotationRecord:
    """Give the old one up: local States withdraw their trust in it, and an old root is no longer handed out.

    Raises TrialError: not switched, or (unless `wait_for_overlap` is False) the overlap is not over.
    """
    raise NotImplementedError


def cancel(store: PkiStore, rotation: RotationRecord) -> RotationRecord:
    """Give the rotation up; a successor that was made stays. Raises TrialError: it is switched, or has ended."""
    raise NotImplementedError
