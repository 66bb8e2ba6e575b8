"""Which certificates can be rotated, and how the successor is created."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from labconsole.errors import UserError
from labconsole.security.pki.records import CertificateRecord, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import AUTHORITIES, CertificateProfile
from labconsole_certificates.operations.record_lookup import authorities_of
from labconsole_certificates.trust.matrix import trusted_by


class RotationKind(StrEnum):
    """How the successor is created."""

    ROOT = "root"
    """A new root with a new key, and link certificates both ways (RFC 9810, 4.4)."""
    SELF_SIGNED = "self-signed"
    """A new self-signed end certificate, which the peers pin."""
    ISSUED_HERE = "issued-here"
    """Issued by a CA whose key is stored here."""
    ISSUED_ELSEWHERE = "issued-elsewhere"
    """A CSR is sent to the issuing State, whose certificate is imported."""


def kind_of(snapshot: Snapshot, record: CertificateRecord, at: datetime) -> RotationKind:
    """How a successor of `record` would be created at `at` (aware)."""
    if record.profile is CertificateProfile.ROOT:
        return RotationKind.ROOT
    if record.self_signed:
        return RotationKind.SELF_SIGNED
    return RotationKind.ISSUED_HERE if issuers_here(snapshot, record, at) else RotationKind.ISSUED_ELSEWHERE


def issuers_here(snapshot: Snapshot, record: CertificateRecord, at: datetime) -> tuple[CertificateRecord, ...]:
    """The CA certificates with their key here that could issue a successor of `record`, the preferred one first.

    Raises UserError: the issuing State is unknown.
    """
    issuer = issuing_state(snapshot, record)
    if not issuer.local:
        return ()
    able = authorities_of(snapshot, issuer, at)
    if record.profile in AUTHORITIES:
        return tuple(authority for authority in able if authority.self_signed)
    return able


def issuing_state(snapshot: Snapshot, record: CertificateRecord) -> State:
    """The State whose CA issued `record`. Raises UserError: its issuer, or its State, is unknown."""
    for issuer in snapshot.issuers_of(record):
        if issuer.state is not None:
            return snapshot.state_by_id[issuer.state]
    raise UserError("It is not known which State issued this certificate: import its issuer's certificate first.")


def owner(snapshot: Snapshot, record: CertificateRecord) -> State:
    """The State that `record` certifies. Raises UserError: unknown, or its keys are on another console."""
    state = None if record.state is None else snapshot.state_by_id[record.state]
    if state is None or not state.local or record.key is None:
        raise UserError("Only what has its private key here can be rotated here: let its State do that.")
    return state


def peers_of(snapshot: Snapshot, record: CertificateRecord) -> tuple[State, ...]:
    """The other States that must trust the successor of `record`, a root or a pin, before the switch.

    Known by trust, by their newest trust bundles and by handshakes that passed; for a root, also by the certificates it
    issued to States of other consoles, which need its link certificates. The trust of this console's own States is
    known exactly, so nothing else counts for them. Certificates issued by a CA are trusted through it: no peer must
    confirm them.
    """
    proven = _proven_with(snapshot, record)
    return tuple(
        state
        for state in snapshot.states
        if state.id != record.state
        and (record.sha256 in trusted_by(snapshot, state.id) or (state.id in proven and not state.local))
    )


def _proven_with(snapshot: Snapshot, record: CertificateRecord) -> frozenset[int]:
    """States that have accepted `record` in a handshake, or (of a root) own a certificate that it issued."""
    if not record.self_signed:
        return frozenset()
    below = {each.id for each in snapshot.certificates if each.id == record.id or record in snapshot.chain_of(each)}
    accepted = {proof.client for proof in snapshot.proofs if proof.server_certificate in below}
    accepted |= {proof.server for proof in snapshot.proofs if proof.client_certificate in below}
    issued = {
        each.state
        for each in snapshot.certificates
        if each.id in below and each.state is not None and each.removed is None and each.revoked is None
    }
    return frozenset(accepted | issued)
