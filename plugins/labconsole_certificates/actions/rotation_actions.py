"""The steps of a rotation as actions, so that a running trial can be rotated under."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from labconsole.operation import OperationContext
from labconsole.security.pki.records import RotationRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.trial import Parameters
from labconsole_certificates.actions.rotation_parameters import (
    BeginRotationParameters,
    ConfirmRotationParameters,
    FinishRotationParameters,
    PrepareRotationParameters,
    RotationParameters,
    SwitchRotationParameters,
)
from labconsole_certificates.operations.new_keys import secrets_of
from labconsole_certificates.operations.pki_operation import PkiOperation, key_secrets
from labconsole_certificates.operations.references import certificate_named, rotation_numbered, state_named
from labconsole_certificates.rotation import steps
from labconsole_certificates.rotation.kinds import RotationKind, issuers_here, kind_of
from labconsole_certificates.rotation.plan import plan_of


class BeginRotation(PkiOperation[BeginRotationParameters]):
    """Plans to replace a certificate."""

    name: ClassVar[str] = "certificates.rotation-begin"
    title: ClassVar[str] = "Begin a rotation"
    description: ClassVar[str] = "Plans to replace a certificate, and says which States must know its successor first."
    parameters: ClassVar[type[Parameters]] = BeginRotationParameters

    def work(
        self, parameters: BeginRotationParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> str:
        certificate = certificate_named(store.snapshot(), parameters.certificate)
        rotation = steps.begin(store, certificate, overlap_days=parameters.overlap_days)
        return f"Rotation {rotation.id} has begun. {_next(store, rotation)}"


class PrepareRotation(PkiOperation[PrepareRotationParameters]):
    """Makes the successor."""

    name: ClassVar[str] = "certificates.rotation-prepare"
    title: ClassVar[str] = "Make the successor"
    description: ClassVar[str] = (
        "Makes a new key with the same subject and names: for a root with link certificates both ways, for what "
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
        return (*secrets_of(parameters.new_key()), *key_secrets(directory, snapshot, *signers))

    def work(
        self, parameters: PrepareRotationParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> str:
        rotation = rotation_numbered(store.snapshot(), parameters.rotation)
        prepared = steps.prepare(store, rotation, parameters.new_key(), days=parameters.valid_days, prompt=prompt)
        return f"Rotation {rotation.id}: prepared. {_next(store, prepared)}"


class AdoptSuccessor(PkiOperation[RotationParameters]):
    """Takes what came back for the CSR as the successor."""

    name: ClassVar[str] = "certificates.rotation-adopt"
    title: ClassVar[str] = "Adopt the successor"
    description: ClassVar[str] = "The certificate that came back for the CSR becomes the successor."
    parameters: ClassVar[type[Parameters]] = RotationParameters

    def work(self, parameters: RotationParameters, store: PkiStore, prompt: Prompt, context: OperationContext) -> str:
        rotation = steps.adopt(store, rotation_numbered(store.snapshot(), parameters.rotation))
        return f"Rotation {rotation.id} has its successor. {_next(store, rotation)}"


class ConfirmRotation(PkiOperation[ConfirmRotationParameters]):
    """Notes that a peer trusts the successor."""

    name: ClassVar[str] = "certificates.rotation-confirm"
    title: ClassVar[str] = "Note a confirmation"
    description: ClassVar[str] = "Notes that a State has told you that it trusts the successor."
    parameters: ClassVar[type[Parameters]] = ConfirmRotationParameters

    def work(
        self, parameters: ConfirmRotationParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> str:
        snapshot = store.snapshot()
        peer = state_named(snapshot, parameters.peer)
        rotation = steps.confirm(store, rotation_numbered(snapshot, parameters.rotation), peer)
        return f"Rotation {rotation.id}: {peer.name} has confirmed. {_next(store, rotation)}"


class SwitchRotation(PkiOperation[SwitchRotationParameters]):
    """Uses the successor from now on."""

    name: ClassVar[str] = "certificates.rotation-switch"
    title: ClassVar[str] = "Switch to the successor"
    description: ClassVar[str] = "Identities and CAs use the successor from now on; the old one still holds."
    parameters: ClassVar[type[Parameters]] = SwitchRotationParameters

    def work(
        self, parameters: SwitchRotationParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> str:
        rotation = rotation_numbered(store.snapshot(), parameters.rotation)
        switched = steps.switch(store, rotation, wait_for_peers=parameters.wait_for_peers)
        return f"Rotation {rotation.id}: switched. {_next(store, switched)}"


class FinishRotation(PkiOperation[FinishRotationParameters]):
    """Gives the old one up."""

    name: ClassVar[str] = "certificates.rotation-finish"
    title: ClassVar[str] = "Finish the rotation"
    description: ClassVar[str] = "Gives the old one up: States of this console trust it no more."
    parameters: ClassVar[type[Parameters]] = FinishRotationParameters

    def work(
        self, parameters: FinishRotationParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> str:
        rotation = rotation_numbered(store.snapshot(), parameters.rotation)
        steps.finish(store, rotation, wait_for_overlap=parameters.wait_for_overlap)
        return f"Rotation {rotation.id} is finished."


class CancelRotation(PkiOperation[RotationParameters]):
    """Gives a rotation up."""

    name: ClassVar[str] = "certificates.rotation-cancel"
    title: ClassVar[str] = "Give the rotation up"
    description: ClassVar[str] = "Gives the rotation up; a successor that was made stays."
    parameters: ClassVar[type[Parameters]] = RotationParameters

    def work(self, parameters: RotationParameters, store: PkiStore, prompt: Prompt, context: OperationContext) -> str:
        rotation = steps.cancel(store, rotation_numbered(store.snapshot(), parameters.rotation))
        return f"Rotation {rotation.id} is given up."


def _next(store: PkiStore, rotation: RotationRecord) -> str:
    return plan_of(store.snapshot(), rotation, datetime.now(UTC)).next_sentence
