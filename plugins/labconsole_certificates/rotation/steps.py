"""The steps of a rotation, each one change of the database: begin, prepare, adopt, confirm, switch, finish, cancel."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from labconsole.errors import UserError
from labconsole.security.pki.records import CertificateRecord, Origin, RotationRecord, RotationStatus, State, TrustKind
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.names import short_name
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.record_lookup import key_of
from labconsole_certificates.rotation.plan import RotationPlan, plan_of, requested
from labconsole_certificates.rotation.rotation_kinds import RotationKind, kind_of, owner, peers_of
from labconsole_certificates.rotation.successors import new_issued, new_request, new_root, new_self_signed
from labconsole_certificates.trust.matrix import trusted_by

OVERLAP_DAYS = 30
"""Days for which the old one is valid along with its successor after the switch, by default."""


def begin(store: PkiStore, certificate: CertificateRecord, *, overlap_days: int = OVERLAP_DAYS) -> RotationRecord:
    """Begin to replace `certificate`. Its peers must confirm; they are determined again at each step.

    Raises UserError: it is being rotated already, its key is not here, or it is removed.
    """
    snapshot = store.snapshot()
    owner(snapshot, certificate)
    if certificate.removed is not None:
        raise UserError(f"{short_name(certificate.certificate)} is removed: restore it first.")
    if certificate.origin is Origin.LINK:
        raise UserError("A link certificate is not rotated: rotate the root that it links.")
    peers = peers_of(snapshot, certificate)
    kind_of(snapshot, certificate, datetime.now(UTC))
    with store.change() as change:
        return change.add_rotation(certificate.id, overlap_days, [peer.id for peer in peers])


def prepare(
    store: PkiStore, rotation: RotationRecord, new: NewKey, *, days: int | None = None, prompt: Prompt | None = None
) -> RotationRecord:
    """Create key and successor with the same subject, names and limits; `days`: as long as the old one if None.

    `new` may omit the key's type: the successor then has that of the old key.
    A root gets link certificates both ways. For what another console's State issued, a CSR is created, to be sent like
    any other. Raises UserError: not possible now, a key does not open; nothing changed.
    """
    at = datetime.now(UTC)
    snapshot = store.snapshot()
    _must_be(rotation, RotationStatus.PREPARING, "The successor is there already")
    old = snapshot.certificate_by_id[rotation.certificate]
    if new.type is None:
        new = replace(new, type=key_of(snapshot, old).type)
    validity = Validity.for_days(days or _lifetime(old))
    match kind_of(snapshot, old, at):
        case RotationKind.ROOT:
            return new_root(store, snapshot, rotation, new, validity, prompt)
        case RotationKind.SELF_SIGNED:
            return new_self_signed(store, snapshot, rotation, new, validity, prompt)
        case RotationKind.ISSUED_HERE:
            return new_issued(store, snapshot, rotation, new, validity, prompt)
        case RotationKind.ISSUED_ELSEWHERE:
            return new_request(store, snapshot, rotation, new, prompt)


def adopt(store: PkiStore, rotation: RotationRecord) -> RotationRecord:
    """Make the certificate that was imported for the CSR of `prepare` the successor. Raises UserError: none."""
    snapshot = store.snapshot()
    _must_be(rotation, RotationStatus.PREPARING, "The successor is there already")
    request = requested(snapshot, rotation)
    if request is None or request.certificate is None:
        raise UserError("No certificate has come back for the CSR yet: take it in first.")
    with store.change() as change:
        return change.advance_rotation(rotation.id, RotationStatus.OVERLAP, successor=request.certificate)


def confirm(store: PkiStore, rotation: RotationRecord, peer: State) -> RotationRecord:
    """Record that `peer` trusts the successor; a State of this console trusts it from then on.

    Raises UserError: there is none, or `peer` is not a peer of it.
    """
    if rotation.successor is None:
        raise UserError("There is no successor yet that a peer could trust: create it first.")
    with store.change() as change:
        snapshot = change.snapshot()
        found = [answer.state for answer in plan_of(snapshot, rotation, datetime.now(UTC)).peers]
        if peer not in found:
            raise UserError(f"{peer.name} need not confirm this rotation.")
        change.add_rotation_peers(rotation.id, [state.id for state in found])
        confirmed = change.confirm_rotation(rotation.id, peer.id)
        successor = snapshot.certificate_by_id[rotation.successor]
        if peer.local and successor.sha256 not in trusted_by(snapshot, peer.id):  # else the last step ends its trust
            kind = TrustKind.ROOT if successor.profile is CertificateProfile.ROOT else TrustKind.PIN
            change.trust(peer.id, successor.id, kind, f"rotation {rotation.id}, whose old one it trusts")
        return confirmed


def switch(store: PkiStore, rotation: RotationRecord, *, wait_for_peers: bool = True) -> RotationRecord:
    """Use the successor: identities move to it; CAs issue with it.

    Raises UserError: no successor, or (unless `wait_for_peers` is False) a peer has not confirmed.
    """
    _must_be(rotation, RotationStatus.OVERLAP, "Only what has a successor, and is not switched, can be switched")
    with store.change() as change:
        snapshot = change.snapshot()
        if wait_for_peers:
            _must_be_confirmed(plan_of(snapshot, rotation, datetime.now(UTC)))
        for identity in snapshot.identities:
            if identity.certificate == rotation.certificate and rotation.successor is not None:
                change.name_identity(identity.name, rotation.successor)
        return change.advance_rotation(rotation.id, RotationStatus.SWITCHED)


def finish(store: PkiStore, rotation: RotationRecord, *, wait_for_overlap: bool = True) -> RotationRecord:
    """Distrust the old one: local States withdraw their trust in it, and an old root is no longer in bundles.

    Raises UserError: not switched, or (unless `wait_for_overlap` is False) the overlap is not over, or a peer that was
    found since the switch has not confirmed.
    """
    at = datetime.now(UTC)
    _must_be(rotation, RotationStatus.SWITCHED, "Only what is switched can be finished")
    with store.change() as change:
        snapshot = change.snapshot()
        plan = plan_of(snapshot, rotation, at)
        if wait_for_overlap:
            if plan.overlap is not None and at < plan.overlap[1]:
                raise UserError(
                    f"The overlap lasts until {plan.overlap[1]:%Y-%m-%d %H:%M} UTC: wait, or end it without waiting."
                )
            _must_be_confirmed(plan)
        old = plan.old
        local = {state.id for state in snapshot.states if state.local}
        for trust in snapshot.trust:
            if trust.certificate == old.id and trust.withdrawn is None and trust.state in local:
                change.withdraw_trust(trust.id)
        if old.profile is CertificateProfile.ROOT and old.removed is None:
            change.remove(old.id)
        return change.advance_rotation(rotation.id, RotationStatus.FINISHED)


def cancel(store: PkiStore, rotation: RotationRecord) -> RotationRecord:
    """Cancel the rotation; an existing successor stays. Raises UserError: it is switched, or has ended."""
    if rotation.status not in (RotationStatus.PREPARING, RotationStatus.OVERLAP):
        raise UserError(f"The rotation is {rotation.status}: it cannot be given up any more.")
    with store.change() as change:
        return change.advance_rotation(rotation.id, RotationStatus.CANCELLED)


def _must_be_confirmed(plan: RotationPlan) -> None:
    missing = ", ".join(peer.state.name for peer in plan.peers if not peer.confirmed)
    if missing:
        raise UserError(
            f"{missing} would refuse the successor: send your next trust bundle and have it confirmed, or do not wait."
        )


def _must_be(rotation: RotationRecord, status: RotationStatus, otherwise: str) -> None:
    if rotation.status is not status:
        raise UserError(f"{otherwise}: this rotation is {rotation.status}.")


def _lifetime(record: CertificateRecord) -> int:
    certificate = record.certificate
    return max(1, (certificate.not_valid_after_utc - certificate.not_valid_before_utc).days)
