"""The plan of a rotation: its steps, who has confirmed, how long both are valid, and what is next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from labconsole.security.certificate_status import NOTICES
from labconsole.security.pki.records import (
    CertificateRecord,
    Origin,
    RequestRecord,
    RequestStatus,
    RotationRecord,
    RotationStatus,
    State,
)
from labconsole.security.pki.snapshot import Snapshot
from labconsole_certificates.rotation.rotation_kinds import RotationKind, issuing_state, kind_of, peers_of
from labconsole_certificates.trust.matrix import trusted_by


class RotationStepKind(StrEnum):
    """Kinds of steps; each is a function of `rotation.steps`."""

    PREPARE = "prepare"
    """Create the successor (needs keys): with link certificates for a root; or the CSR for it."""
    ADOPT = "adopt"
    """The certificate that the issuing State sent becomes the successor."""
    CONFIRM = "confirm"
    """A peer confirms that it trusts the successor; its trust or its newest bundle may show that, too."""
    SWITCH = "switch"
    """Use the successor from now on."""
    FINISH = "finish"
    """The overlap is over: the old one is retired."""


@dataclass(frozen=True)
class RotationStep:
    """One step, in the order of the plan."""

    kind: RotationStepKind
    title: str
    done: bool
    waits_for: str
    """What must happen first, in one sentence; empty if the step is possible now or is done."""


@dataclass(frozen=True)
class PeerAnswer:
    """Whether a State that must confirm has done so, and the evidence."""

    state: State
    confirmed: bool
    how: str


@dataclass(frozen=True)
class RotationPlan:
    """The state of one rotation. `overlap`: from when until when both are valid; None without a successor."""

    rotation: RotationRecord
    kind: RotationKind
    old: CertificateRecord
    successor: CertificateRecord | None
    links: tuple[CertificateRecord, ...]
    overlap: tuple[datetime, datetime] | None
    peers: tuple[PeerAnswer, ...]
    steps: tuple[RotationStep, ...]
    """Its steps; none for a rotation that was cancelled."""

    @property
    def next_step(self) -> RotationStep | None:
        """The first step that is not done."""
        return next((step for step in self.steps if not step.done), None)

    @property
    def next_sentence(self) -> str:
        """The next step, for the operator."""
        step = self.next_step
        if step is None:
            return f"This rotation is {self.rotation.status}."
        return step.waits_for or f"{step.title}."


def plan_of(snapshot: Snapshot, rotation: RotationRecord, at: datetime) -> RotationPlan:
    """The plan of `rotation` at `at` (aware). Raises UserError: the issuing State is unknown."""
    old = snapshot.certificate_by_id[rotation.certificate]
    successor = None if rotation.successor is None else snapshot.certificate_by_id[rotation.successor]
    kind = kind_of(snapshot, old, at)
    overlap = None if successor is None else (_begin_of(successor), _end_of_overlap(rotation, old, at))
    peers = _answers(snapshot, rotation, old, successor)
    steps = () if rotation.status is RotationStatus.CANCELLED else _steps(snapshot, rotation, kind, overlap, peers, at)
    return RotationPlan(rotation, kind, old, successor, _links(snapshot, old, successor), overlap, peers, steps)


def requested(snapshot: Snapshot, rotation: RotationRecord) -> RequestRecord | None:
    """The newest CSR for the successor: created since the rotation began, by the same State, for the same issuer."""
    old = snapshot.certificate_by_id[rotation.certificate]
    return next(
        (
            request
            for request in reversed(snapshot.requests)
            if request.made >= rotation.begun
            and request.requester == old.state
            and request.csr.subject == old.certificate.subject
            and request.profile is old.profile
            and request.status is not RequestStatus.REFUSED
        ),
        None,
    )


def _answers(
    snapshot: Snapshot, rotation: RotationRecord, old: CertificateRecord, successor: CertificateRecord | None
) -> tuple[PeerAnswer, ...]:
    """The recorded peers and, while the rotation is in progress, those found now: trust, bundles and handshakes change
    meanwhile. A recorded one that has not confirmed and is no longer a peer is left out.
    """
    noted = [_answer(snapshot, rotation, snapshot.state_by_id[peer], successor) for peer in rotation.peers]
    if rotation.ended is not None:
        return tuple(noted)
    confirmed = {answer.state.id: answer for answer in noted if answer.confirmed}
    found = [_answer(snapshot, rotation, peer, successor) for peer in peers_of(snapshot, old)]
    return tuple({**confirmed, **{answer.state.id: answer for answer in found}}.values())


def _steps(
    snapshot: Snapshot,
    rotation: RotationRecord,
    kind: RotationKind,
    overlap: tuple[datetime, datetime] | None,
    peers: Sequence[PeerAnswer],
    at: datetime,
) -> tuple[RotationStep, ...]:
    made = rotation.successor is not None
    switched = rotation.switched is not None
    steps = []
    if kind is RotationKind.ISSUED_ELSEWHERE:
        issuer = issuing_state(snapshot, snapshot.certificate_by_id[rotation.certificate]).name
        request = requested(snapshot, rotation)
        came = request is not None and request.certificate is not None
        wait = "" if came else f"Give the CSR to {issuer}, and import the certificate that comes back."
        steps += [
            RotationStep(
                RotationStepKind.PREPARE, f"Create a new key and a CSR for {issuer}", made or request is not None, ""
            ),
            RotationStep(
                RotationStepKind.ADOPT,
                "Take the certificate that came back as the successor",
                made,
                "" if made else wait,
            ),
        ]
    else:
        steps.append(RotationStep(RotationStepKind.PREPARE, _PREPARE[kind], made, ""))
    missing = [peer.state.name for peer in peers if not peer.confirmed]
    if peers:
        wait = "" if made else "Create the successor first."
        title = f"Get the confirmation of {', '.join(missing)}" if missing else "All peers have confirmed"
        steps.append(RotationStep(RotationStepKind.CONFIRM, title, made and not missing, wait))
    wait = f"Wait until {', '.join(missing)} trusts the successor." if missing else ""
    wait = wait if made else "Create the successor first."
    steps.append(
        RotationStep(RotationStepKind.SWITCH, "Use the successor from now on", switched, "" if switched else wait)
    )
    finished = rotation.status is RotationStatus.FINISHED
    steps.append(
        RotationStep(
            RotationStepKind.FINISH,
            "Retire the old one",
            finished,
            "" if finished else _before_the_end(switched, overlap, at),
        )
    )
    return tuple(steps)


_PREPARE = MappingProxyType(
    {
        RotationKind.ROOT: "Create a new root, and link certificates both ways",
        RotationKind.SELF_SIGNED: "Create a new key and a new self-signed certificate",
        RotationKind.ISSUED_HERE: "Create a new key, and issue the new certificate",
    }
)


def _before_the_end(switched: bool, overlap: tuple[datetime, datetime] | None, at: datetime) -> str:
    if not switched or overlap is None:
        return "Switch to the successor first."
    return "" if at >= overlap[1] else f"Wait until the overlap is over, on {overlap[1]:%Y-%m-%d %H:%M} UTC."


def _answer(
    snapshot: Snapshot, rotation: RotationRecord, peer: State, successor: CertificateRecord | None
) -> PeerAnswer:
    if peer.id in rotation.confirmed:
        return PeerAnswer(peer, True, "noted by the operator")
    if successor is not None and successor.sha256 in trusted_by(snapshot, peer.id):
        return PeerAnswer(peer, True, "trusts it here" if peer.local else "its newest trust bundle says so")
    return PeerAnswer(peer, False, "not known to trust the successor")


def _links(
    snapshot: Snapshot, old: CertificateRecord, successor: CertificateRecord | None
) -> tuple[CertificateRecord, ...]:
    if successor is None:
        return ()
    keys = (old.certificate.public_key(), successor.certificate.public_key())
    return tuple(
        record
        for record in snapshot.certificates
        if record.origin is Origin.LINK and record.state == old.state and record.certificate.public_key() in keys
    )


def _begin_of(record: CertificateRecord) -> datetime:
    return record.certificate.not_valid_before_utc


def _end_of_overlap(rotation: RotationRecord, old: CertificateRecord, at: datetime) -> datetime:
    """That many days after the switch (before it: if it were now), but not after the old one expires."""
    switched = rotation.switched or at
    return min(switched + timedelta(days=rotation.overlap_days), old.certificate.not_valid_after_utc)


@dataclass(frozen=True)
class Due:
    """An expiring certificate. `notice`: 90, 30, 7, or 0 if it has expired; `rotation`: the one in progress."""

    record: CertificateRecord
    notice: int
    days_left: int
    rotation: RotationRecord | None


def due(snapshot: Snapshot, at: datetime) -> tuple[Due, ...]:
    """The local States' certificates with their key here that expire within 90 days after `at`, soonest first.

    Removed and revoked ones, and those replaced by a rotation, are left out.
    """
    under_way = {rotation.certificate: rotation for rotation in snapshot.rotations if rotation.ended is None}
    replaced = {
        rotation.certificate for rotation in snapshot.rotations if rotation.status is RotationStatus.FINISHED
    } | {record.replaces for record in snapshot.certificates}
    local = {state.id for state in snapshot.states if state.local}
    found = []
    for record in snapshot.certificates:
        ours = record.state in local and record.key is not None and record.origin is not Origin.LINK
        if not ours or record.removed is not None or record.revoked is not None:
            continue
        rotation = under_way.get(record.id)
        if record.id in replaced and rotation is None:
            continue
        left = record.certificate.not_valid_after_utc - at
        notice = 0 if left < timedelta(0) else next((days for days in NOTICES if left <= timedelta(days=days)), None)
        if notice is not None:
            found.append(Due(record, notice, left.days, rotation))
    return tuple(sorted(found, key=lambda one: one.record.certificate.not_valid_after_utc))
