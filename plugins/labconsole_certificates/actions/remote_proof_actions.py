"""Actions that prove one direction with a State elsewhere: connect to its server, or wait for its connection."""

from __future__ import annotations

from math import floor
from pathlib import Path
from typing import ClassVar

from labconsole.errors import UserError
from labconsole.operation import OperationContext
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.trial import Parameters
from labconsole_certificates.actions.exchange_parameters import ConnectParameters, ListenParameters
from labconsole_certificates.exchange.remote_proving import (
    HANDSHAKE_S,
    Following,
    Place,
    RemoteProof,
    connect_to,
    listen_for,
    own_certificate,
)
from labconsole_certificates.operations.pki_operation import PkiOperation, key_secrets


class Connect(PkiOperation[ConnectParameters]):
    """Lets a State connect to a server of another console."""

    name: ClassVar[str] = "certificates.connect"
    title: ClassVar[str] = "Connect to the other State"
    description: ClassVar[str] = (
        "A State of this console connects by mutual TLS to the other State's host: its console that waits there, or "
        "its broker. It shows the certificate that the other State's CA issued to it, and checks the one of the server."
    )
    parameters: ClassVar[type[Parameters]] = ConnectParameters

    def needs(self, parameters: ConnectParameters, directory: Path, snapshot: Snapshot) -> tuple[SecretRequest, ...]:
        shown = own_certificate(snapshot, parameters.state_a, parameters.state_b, connects=True)
        return key_secrets(directory, snapshot, shown)

    def work(self, parameters: ConnectParameters, store: PkiStore, prompt: Prompt, context: OperationContext) -> str:
        place = Place(parameters.host, parameters.port, parameters.server_name, parameters.foreign)
        following = _following(context, HANDSHAKE_S)
        return _told(connect_to(store, parameters.state_a, parameters.state_b, place, prompt, following))


class Listen(PkiOperation[ListenParameters]):
    """Lets a State wait for the connection of another console."""

    name: ClassVar[str] = "certificates.listen"
    title: ClassVar[str] = "Wait for the other State"
    description: ClassVar[str] = (
        "A State of this console waits as a TLS server for a connection of the other State's console, and checks the "
        "certificate that it shows. It ends when one has passed, with the time, or when it is cancelled."
    )
    parameters: ClassVar[type[Parameters]] = ListenParameters

    def needs(self, parameters: ListenParameters, directory: Path, snapshot: Snapshot) -> tuple[SecretRequest, ...]:
        shown = own_certificate(snapshot, parameters.state_a, parameters.state_b, connects=False)
        return key_secrets(directory, snapshot, shown)

    def work(self, parameters: ListenParameters, store: PkiStore, prompt: Prompt, context: OperationContext) -> str:
        at = (parameters.address, parameters.port, parameters.wait_s)
        following = _following(context, parameters.wait_s)
        return _told(listen_for(store, parameters.state_a, parameters.state_b, *at, prompt, following))


def _following(context: OperationContext, limit_s: float) -> Following:
    """Tells the operator each second of the time limit that has gone; the context says whether it is cancelled."""
    told = -1

    def watch(left: float) -> bool:
        nonlocal told
        gone = max(0, floor(limit_s - left))
        if gone != told:  # at the moment when it changes, so that the time left is told right
            told = gone
            context.progress(gone, round(limit_s))
        return context.stop_requested

    return Following(context.say, watch)


def _told(proof: RemoteProof) -> str:
    if not proof.ok:
        raise UserError(proof.sentence())
    return proof.sentence()
