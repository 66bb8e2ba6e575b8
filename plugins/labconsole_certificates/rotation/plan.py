"""The plan of a rotation: its steps, who has confirmed, how long both hold, and what is next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from labconsole.security.pki.records import CertificateRecord, Origin, RotationRecord, RotationStatus, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.names import short_name
from labconsole_certificates.rotation.kinds import RotationKind, issuing_state, kind_of
from labconsole_certificates.trust.matrix import trusted_by


class StepKind(StrEnum):
    """What is to be done; each is a function of `rotation.steps`."""

    PREPARE = "prepare"
    """Make the successor (needs keys): with link certificates for a root; or the CSR for it."""
    ADOPT = "adopt"
    """The certificate that the issuing State sent becomes the successor."""
    CONFIRM = "confirm"
    """A peer says that it trusts the successor; seen by itself in its trust or its newest bundle."""
    SWITCH = "switch"
    """Use the successor from now on."""
    FINISH = "finish"
    """The overlap is over: the old one is given up."""


@dataclass(frozen=True)
class Step:
    """One step, in the order of the plan."""

    kind: StepKind
    title: str
    done: bool
    waits_for: str
    """What must happen first, in one sentence; empty if the step can be taken now or is done."""


@dataclass(frozen=True)
class PeerAnswer:
    """Whether a State that must confirm has done so, and how that is known."""

    state: State
    confirmed: bool
    how: str


@dataclass(frozen=True)
class RotationPlan:
    """All about one rotation. `overlap`: from when until when both hold; None while there is no successor."""

    rotation: RotationRecord
    kind: RotationKind
    old: CertificateRecord
    successor: CertificateRecord | None
    links: tuple[CertificateRecord, ...]
    overlap: tuple[datetime, datetime] | None
    peers: tuple[PeerAnswer, ...]
    steps: tuple[Step, ...]
    """None of a rotation that was cancelled."""

    @property
    def next_step(self) -> Step | None:
        """The first step that is not done."""
        return next((step for step in self.steps if not step.done), None)

    @property
    def next_sentence(self) -> str:
        """What is next, for the operator."""
        step = self.next_step
        if step is None:
            return f"This rotation is {self.rotation.status}."
        return step.waits_for or f"{step.title}."


def plan_of(snapshot: Snapshot, rotation: RotationRecord, at: datetime) -> RotationPlan:
    """The plan of `rotation` at `at` (aware). Raises TrialError: whose CA issued the certificate is not known."""
    raise NotImplementedError
