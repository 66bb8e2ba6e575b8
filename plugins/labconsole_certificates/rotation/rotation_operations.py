"""Operations of rotations: begin one, list them, and their steps one by one, also while a trial runs."""

from __future__ import annotations

from abc import abstractmethod
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from labconsole.errors import UserError
from labconsole.model.operation import OperationContext, Result, TextTable
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import RotationRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.security.x509.names import short_name
from labconsole_certificates.operations.new_keys import secrets_of
from labconsole_certificates.operations.parameter_fields import (
    CertificateChoice,
    IssuerUnlockParameters,
    NoParameters,
    SuccessorKeyParameters,
)
from labconsole_certificates.operations.pki_operation import PkiOperation, PkiReport, key_secrets
from labconsole_certificates.operations.record_lookup import certificate_named, rotation_numbered, state_named
from labconsole_certificates.revocation.crl_renewal import due_crls
from labconsole_certificates.rotation import steps
from labconsole_certificates.rotation.plan import due, plan_of
from labconsole_certificates.rotation.rotation_kinds import RotationKind, issuers_here, kind_of


class BeginRotationParameters(Parameters):
    """A certificate to replace."""

    certificate: CertificateChoice
    overlap_days: int = parameter(
        "Overlap",
        "Days for which both are valid after the switch",
        default=steps.OVERLAP_DAYS,
        ge=0,
        le=3_650,
        unit="days",
        option="--overlap",
    )


class BeginRotation(PkiOperation[BeginRotationParameters]):
    """Plans to replace a certificate."""

    name: ClassVar[str] = "certificates.rotation-begin"
    title: ClassVar[str] = "Begin a rotation"
    description: ClassVar[str] = "Plans to replace a certificate, and says which States must know its successor first."
    parameters: ClassVar[type[Parameters]] = BeginRotationParameters

    def work(
        self, parameters: BeginRotationParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        certificate = certificate_named(store.snapshot(), parameters.certificate)
        rotation = steps.begin(store, certificate, overlap_days=parameters.overlap_days)
        return _plan(store.snapshot(), rotation)


class ListRotations(PkiReport[NoParameters]):
    """Lists what expires soon, and the rotations."""

    name: ClassVar[str] = "certificates.rotations"
    title: ClassVar[str] = "Rotations"
    description: ClassVar[str] = "Lists the certificates and CRLs that expire soon, and the rotations."
    parameters: ClassVar[type[Parameters]] = NoParameters

    def read(self, parameters: NoParameters, reader: PkiReader) -> Result:
        snapshot, at = reader.snapshot(), datetime.now(UTC)
        soon, expiring = [], []
        for one in due(snapshot, at):
            number, name = None if one.rotation is None else one.rotation.id, short_name(one.record.certificate)
            soon.append((f"{one.days_left} days", name, str(number or "")))
            expiring.append(
                {"certificate": name, "sha256": one.record.sha256, "days_left": one.days_left, "rotation": number}
            )
        crls = tuple(crl.sentence() for crl in due_crls(snapshot, at))
        rows = []
        for rotation in snapshot.rotations:
            name = short_name(snapshot.certificate_by_id[rotation.certificate].certificate)
            rows.append((str(rotation.id), name, str(rotation.status), plan_of(snapshot, rotation, at).next_sentence))
        parts: tuple[str | TextTable, ...] = (
            TextTable(("Expires in", "Certificate", "Rotation"), tuple(soon)),
            *crls,
            TextTable(("Rotation", "Certificate", "Status", "Next"), tuple(rows)),
        )
        rotations = [_plan_data(snapshot, rotation, at) for rotation in snapshot.rotations]
        return Result(parts, {"expiring": expiring, "crls": list(crls), "rotations": rotations})


class RotationParameters(Parameters):
    """A rotation."""

    rotation: int = parameter(
        "Rotation", "Its number in the list of rotations", ge=1, positional=True, metavar="NUMBER"
    )


R = TypeVar("R", bound=RotationParameters)


class _RotationStep(PkiOperation[R]):
    """A step of a rotation; its result is the plan afterwards."""

    @abstractmethod
    def advance(self, parameters: R, store: PkiStore, rotation: RotationRecord, prompt: Prompt) -> RotationRecord:
        """Execute the step. Raises UserError."""

    def work(self, parameters: R, store: PkiStore, prompt: Prompt, context: OperationContext) -> Result:
        rotation = rotation_numbered(store.snapshot(), parameters.rotation)
        rotation = self.advance(parameters, store, rotation, prompt)
        return _plan(store.snapshot(), rotation)


class PrepareRotationParameters(SuccessorKeyParameters, IssuerUnlockParameters, RotationParameters):
    """The successor to create."""

    valid_days: int | None = parameter(
        "Valid for",
        "Days from now of the successor; not given: as long as the old one was",
        default=None,
        ge=1,
        le=36_500,
        unit="days",
        empty="As the old one",
        option="--days",
        aliases=["--valid-days"],
    )


class PrepareRotation(_RotationStep[PrepareRotationParameters]):
    """Creates the successor."""

    name: ClassVar[str] = "certificates.rotation-prepare"
    title: ClassVar[str] = "Create the successor"
    description: ClassVar[str] = (
        "Creates a new key with the same subject and names: for a root with link certificates both ways, for what "
        "another State issued as a CSR."
    )
    parameters: ClassVar[type[Parameters]] = PrepareRotationParameters

    def needs(
        self, parameters: PrepareRotationParameters, directory: Path, snapshot: Snapshot
    ) -> tuple[SecretRequest, ...]:
        at = datetime.now(UTC)
        old = snapshot.certificate_by_id[rotation_numbered(snapshot, parameters.rotation).certificate]
        match kind_of(snapshot, old, at):
            case RotationKind.ROOT:
                signers = [old]
            case RotationKind.ISSUED_HERE:
                signers = [issuers_here(snapshot, old, at)[0]]
            case RotationKind.SELF_SIGNED | RotationKind.ISSUED_ELSEWHERE:
                signers = []
        unlocking = key_secrets(directory, snapshot, *signers, unlock=parameters.unlock())
        return (*secrets_of(parameters.new_key()), *unlocking)

    def advance(
        self, parameters: PrepareRotationParameters, store: PkiStore, rotation: RotationRecord, prompt: Prompt
    ) -> RotationRecord:
        return steps.prepare(store, rotation, parameters.new_key(), days=parameters.valid_days, prompt=prompt)


class AdoptSuccessor(_RotationStep[RotationParameters]):
    """Adopts the certificate that was issued for the CSR as the successor."""

    name: ClassVar[str] = "certificates.rotation-adopt"
    title: ClassVar[str] = "Adopt the successor"
    description: ClassVar[str] = "The certificate that was issued for the CSR becomes the successor."
    parameters: ClassVar[type[Parameters]] = RotationParameters

    def advance(
        self, parameters: RotationParameters, store: PkiStore, rotation: RotationRecord, prompt: Prompt
    ) -> RotationRecord:
        return steps.adopt(store, rotation)


class ConfirmRotationParameters(RotationParameters):
    """A peer that has confirmed."""

    peer: str = parameter("State", "Who says that it trusts the successor", min_length=1)


class ConfirmRotation(_RotationStep[ConfirmRotationParameters]):
    """Records that a peer trusts the successor."""

    name: ClassVar[str] = "certificates.rotation-confirm"
    title: ClassVar[str] = "Note a confirmation"
    description: ClassVar[str] = "Notes that a State says that it trusts the successor."
    parameters: ClassVar[type[Parameters]] = ConfirmRotationParameters

    def advance(
        self, parameters: ConfirmRotationParameters, store: PkiStore, rotation: RotationRecord, prompt: Prompt
    ) -> RotationRecord:
        return steps.confirm(store, rotation, state_named(store.snapshot(), parameters.peer))


class SwitchRotationParameters(RotationParameters):
    """The switch to the successor."""

    wait_for_peers: bool = parameter(
        "Only if all peers have confirmed", "Others would refuse the successor", default=True
    )


class SwitchRotation(_RotationStep[SwitchRotationParameters]):
    """Uses the successor from now on."""

    name: ClassVar[str] = "certificates.rotation-switch"
    title: ClassVar[str] = "Switch to the successor"
    description: ClassVar[str] = "Identities and CAs use the successor from now on; the old one is still valid."
    parameters: ClassVar[type[Parameters]] = SwitchRotationParameters

    def advance(
        self, parameters: SwitchRotationParameters, store: PkiStore, rotation: RotationRecord, prompt: Prompt
    ) -> RotationRecord:
        return steps.switch(store, rotation, wait_for_peers=parameters.wait_for_peers)


class FinishRotationParameters(RotationParameters):
    """The end of the overlap."""

    wait_for_overlap: bool = parameter(
        "Only after the overlap", "Until then peers may still use the old one", default=True
    )


class FinishRotation(_RotationStep[FinishRotationParameters]):
    """Distrusts the old one."""

    name: ClassVar[str] = "certificates.rotation-finish"
    title: ClassVar[str] = "Finish the rotation"
    description: ClassVar[str] = "Retires the old one: States of this console no longer trust it."
    parameters: ClassVar[type[Parameters]] = FinishRotationParameters

    def advance(
        self, parameters: FinishRotationParameters, store: PkiStore, rotation: RotationRecord, prompt: Prompt
    ) -> RotationRecord:
        return steps.finish(store, rotation, wait_for_overlap=parameters.wait_for_overlap)


class CancelRotation(_RotationStep[RotationParameters]):
    """Cancels a rotation."""

    name: ClassVar[str] = "certificates.rotation-cancel"
    title: ClassVar[str] = "Cancel the rotation"
    description: ClassVar[str] = "Cancels the rotation; a successor that was created stays."
    parameters: ClassVar[type[Parameters]] = RotationParameters

    def advance(
        self, parameters: RotationParameters, store: PkiStore, rotation: RotationRecord, prompt: Prompt
    ) -> RotationRecord:
        return steps.cancel(store, rotation)


StepName = Literal["prepare", "adopt", "confirm", "switch", "finish", "cancel"]
_STEPS: dict[StepName, type[_RotationStep[Any]]] = {
    "prepare": PrepareRotation,
    "adopt": AdoptSuccessor,
    "confirm": ConfirmRotation,
    "switch": SwitchRotation,
    "finish": FinishRotation,
    "cancel": CancelRotation,
}


class AnyStepParameters(PrepareRotationParameters):
    """A rotation and its step to execute; parameters of other steps are ignored."""

    step: StepName | None = parameter(
        "Step",
        "Step to do; not given: show the plan",
        default=None,
        positional=True,
        empty="None: show the plan",
        labels={step: operation.title for step, operation in _STEPS.items()},
    )
    peer: str | None = parameter("State", "Confirm: the State that says that it trusts the successor", default=None)
    force: bool = parameter("Do not wait", "Switch, finish: wait neither for peers nor for the overlap", default=False)

    def step_parameters(self, model: type[Parameters]) -> Parameters:
        """The parameters of the step with the model `model`. Raises UserError: the peer is missing."""
        if "peer" in model.model_fields and not self.peer:
            raise UserError("A State has confirmed: name it with --peer.")
        waits = {"wait_for_peers": not self.force, "wait_for_overlap": not self.force}
        given = {**self.model_dump(), **waits}
        return model.model_validate({name: given[name] for name in model.model_fields})


class Rotation(PkiOperation[AnyStepParameters]):
    """Shows the plan of a rotation, or executes a step of it, which is an operation of its own."""

    name: ClassVar[str] = "certificates.rotation"
    title: ClassVar[str] = "Rotation"
    description: ClassVar[str] = "Shows the plan of a rotation, or does a step of it."
    parameters: ClassVar[type[Parameters]] = AnyStepParameters

    def needs(self, parameters: AnyStepParameters, directory: Path, snapshot: Snapshot) -> tuple[SecretRequest, ...]:
        if parameters.step is None:
            return ()
        step = _STEPS[parameters.step]()
        return step.needs(parameters.step_parameters(step.parameters), directory, snapshot)

    def run(self, parameters: AnyStepParameters, context: OperationContext) -> Result | str:
        if parameters.step is not None:
            return super().run(parameters, context)
        with PkiReader.open() as reader:
            snapshot = reader.snapshot()
        return _plan(snapshot, rotation_numbered(snapshot, parameters.rotation))

    def work(self, parameters: AnyStepParameters, store: PkiStore, prompt: Prompt, context: OperationContext) -> Result:
        assert parameters.step is not None, "without a step nothing is changed"
        step = _STEPS[parameters.step]()
        return step.work(parameters.step_parameters(step.parameters), store, prompt, context)


def _plan(snapshot: Snapshot, rotation: RotationRecord) -> Result:
    at = datetime.now(UTC)
    plan = plan_of(snapshot, rotation, at)
    lines = [
        f"Rotation {rotation.id} of {short_name(plan.old.certificate)}: {rotation.status}",
        *(f"  {'done   ' if one.done else 'to do  '}  {one.title}" for one in plan.steps),
        *(f"  {peer.state.name}: {peer.how}" for peer in plan.peers),
        *([f"  Next: {plan.next_sentence}"] if plan.next_sentence else []),
    ]
    return Result(("\n".join(lines),), _plan_data(snapshot, rotation, at))


def _plan_data(snapshot: Snapshot, rotation: RotationRecord, at: datetime) -> dict[str, Any]:
    plan = plan_of(snapshot, rotation, at)
    return {
        "rotation": rotation.id,
        "certificate": short_name(plan.old.certificate),
        "sha256": plan.old.sha256,
        "successor": None if plan.successor is None else plan.successor.sha256,
        "status": str(rotation.status),
        "steps": [{"step": str(one.kind), "title": one.title, "done": one.done} for one in plan.steps],
        "peers": [{"state": peer.state.name, "confirmed": peer.confirmed, "how": peer.how} for peer in plan.peers],
        "next": plan.next_sentence,
    }
