"""What is rotated, and how its successor comes about."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from labconsole.security.pki.records import CertificateRecord, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.profiles import AUTHORITIES, CertificateProfile
from labconsole.trial import TrialError
from labconsole_certificates.operations.references import authorities_of
from labconsole_certificates.trust.matrix import trusted_by


class RotationKind(StrEnum):
    """How the successor comes about."""

    ROOT = "root"
    """A new root with a new key, and link certificates both ways (RFC 9810, 4.4)."""
    SELF_SIGNED = "self-signed"
    """A new self-signed end certificate, which the peers pin."""
    ISSUED_HERE = "issued-here"
    """Issued anew by a CA whose key lies here."""
    ISSUED_ELSEWHERE = "issued-elsewhere"
    """A CSR goes to the issuing State, and its certificate comes back."""


def kind_of(snapshot: Snapshot, record: CertificateRecord, at: datetime) -> RotationKind:
    """How a successor of `record` would come about at `at` (aware)."""
    if record.profile is CertificateProfile.ROOT:
        return RotationKind.ROOT
    if record.self_signed:
        return RotationKind.SELF_SIGNED
    return RotationKind.ISSUED_HERE if issuers_here(snapshot, record, at) else RotationKind.ISSUED_ELSEWHERE


def issuers_here(snapshot: Snapshot, record: CertificateRecord, at: datetime) -> tuple[CertificateRecord, ...]:
    """The CA certificates with their key here that could issue a successor of `record`, the one to take first.

    Raises TrialError: nobody knows which State issued it.
    """
    issuer = issuing_state(snapshot, record)
    if not issuer.local:
        return ()
    able = authorities_of(snapshot, issuer, at)
    if record.profile in AUTHORITIES:
        return tuple(authority for authority in able if authority.self_signed)
    return able


def issuing_state(snapshot: Snapshot, record: CertificateRecord) -> State:
    """The State whose CA issued `record`. Raises TrialError: its issuer, or whose it is, is not known."""
    for issuer in snapshot.issuers_of(record):
        if issuer.state is not None:
            return snapshot.state_by_id[issuer.state]
    raise TrialError("Nobody knows here which State issued this certificate: take in its issuer's certificate first.")


def owner(snapshot: Snapshot, record: CertificateRecord) -> State:
    """The State that `record` certifies. Raises TrialError: not known, or its keys lie with another console."""
    state = None if record.state is None else snapshot.state_by_id[record.state]
    if state is None or not state.local or record.key is None:
        raise TrialError("Only what has its private key here can be rotated here: let its State do that.")
    return state


def peers_of(snapshot: Snapshot, record: CertificateRecord) -> tuple[State, ...]:
    """The other States that trust `record` itself, as a root or a pin: they must take its successor before the switch.

    What a CA issued is trusted through the CA, so that nobody need confirm its successor.
    """
    return tuple(
        state
        for state in snapshot.states
        if state.id != record.state and record.sha256 in trusted_by(snapshot, state.id)
    )
