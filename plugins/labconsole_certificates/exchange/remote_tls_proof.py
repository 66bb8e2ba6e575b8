"""Proves one direction of an exchange with a remote State: a handshake with its console or broker over the network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from math import floor
from pathlib import Path
from typing import ClassVar

from cryptography import x509

from labconsole.errors import UserError
from labconsole.model.operation import OperationContext, Result
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.security.pki.keys import opened_key
from labconsole.security.pki.records import CertificateRecord, Origin, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.security.x509.certificate_profiles import AUTHORITIES, CertificateProfile
from labconsole.security.x509.fingerprints import fingerprint
from labconsole.security.x509.names import short_name
from labconsole.security.x509.signatures import issued_by
from labconsole.security.x509.validation.judgement import Purpose
from labconsole_certificates.exchange.credentials import client_certificate, server_certificate
from labconsole_certificates.exchange.handshake import Handshake
from labconsole_certificates.exchange.progress import ExchangeStepKind, direction_of
from labconsole_certificates.exchange.remote_handshake import (
    HandshakeOptions,
    answer,
    connect,
    listening,
    where,
)
from labconsole_certificates.exchange.tls_context import TlsCredentials
from labconsole_certificates.exchange.tls_endpoint import CancelCheck, Judge, WaitCancelledError
from labconsole_certificates.exchange.tls_proof import as_json, handshake_detail, server_name, tls_credentials
from labconsole_certificates.operations.certificate_import import add_chain
from labconsole_certificates.operations.parameter_fields import UnlockParameters
from labconsole_certificates.operations.pki_operation import PkiOperation, key_secrets
from labconsole_certificates.operations.record_lookup import key_of, local_state_named, state_named

LOOPBACK = "127.0.0.1"
AMQPS_PORT = 5671
HANDSHAKE_S = 10.0
QUIET_S = 3.0
"""How long a foreign server is listened to for a refusal."""

_SERVER_STEPS = frozenset({ExchangeStepKind.MAKE_ROOT, ExchangeStepKind.MAKE_SERVER})
_CLIENT_STEPS = frozenset(
    {
        ExchangeStepKind.MAKE_REQUEST,
        ExchangeStepKind.GIVE_REQUEST,
        ExchangeStepKind.APPROVE,
        ExchangeStepKind.GIVE_CERTIFICATE,
    }
)
"""Steps that must be done before an end has a certificate to present."""


@dataclass(frozen=True)
class ProofProgress:
    """The observer of a remote proof: receives sentences and the seconds that are left; may cancel."""

    say: Callable[[str], None]
    watch: CancelCheck


@dataclass(frozen=True)
class PeerAddress:
    """Where the other State's server is, and what it is."""

    host: str
    port: int
    server_name: str = ""
    """Name that its certificate must have; empty: the first name of its certificate known here, else `host`."""
    foreign: bool = False
    """Whether it is another TLS server than a console, such as a broker."""


@dataclass(frozen=True)
class RemoteProof:
    """The result of a handshake with a remote State, as this console saw it."""

    client: State
    server: State
    handshake: Handshake

    @property
    def ok(self) -> bool:
        """Whether it passed, and so was recorded as proven."""
        return self.handshake.ok

    def sentence(self) -> str:
        """The result and the report of this end."""
        handshake = self.handshake
        way = f"[{self.client.name}] -> tls-connect -> [{self.server.name}]"
        report = handshake.client_report or handshake.server_report
        if not handshake.ok:
            return f"{way} failed with {handshake.peer}: {report}"
        detail = f"{handshake_detail(handshake)}; {handshake.duration_ns / 1e6:.1f} ms"
        return f"{way} passed with {handshake.peer} ({detail}). {report}"


def connect_to(
    store: PkiStore, a: str, b: str, place: PeerAddress, prompt: Prompt | None, progress: ProofProgress
) -> RemoteProof:
    """The handshake of State A with the server of State B, recorded as proven if both ends accept.

    Raises UserError: a State, its certificate or its key is missing, or B cannot be reached; cancelled.
    """
    snapshot = store.snapshot()
    client, server = _pair(snapshot, a, b)
    own = _own(snapshot, client, client, server, client_certificate(snapshot, client, server))
    known = server_certificate(snapshot, server, client)
    name = place.server_name or _known_name(known) or place.host
    with opened_key(store.directory, key_of(snapshot, own), prompt) as key:
        end = tls_credentials(snapshot, client, own, key)
        judge = _judge(snapshot, end, server, Purpose.TLS_SERVER, name)
        quiet_s = QUIET_S if place.foreign else 0.0
        progress.say(f"{client.name} connects to {where(place.host, place.port)}, and expects {name} there.")
        options = HandshakeOptions(judge, server.name, HANDSHAKE_S, quiet_s, progress.watch)
        handshake = connect(end, place.host, place.port, name, options)
    proof = RemoteProof(client, server, handshake)
    if proof.ok:
        _record(store, proof, server, CertificateProfile.TLS_SERVER, own)
    return proof


def listen_for(
    store: PkiStore,
    a: str,
    b: str,
    address: str,
    port: int,
    waiting_s: float,
    prompt: Prompt | None,
    progress: ProofProgress,
) -> RemoteProof:
    """The handshake of State A as a server with a client of State B, recorded as proven if both ends accept.

    A connection that fails or is foreign is reported, and the next one awaited until `waiting_s` seconds are over.

    Raises UserError: a State, its certificate or its key is missing, address and port are not available, or no peer
    connected; cancelled.
    """
    snapshot = store.snapshot()
    server, client = _pair(snapshot, a, b)
    own = _own(snapshot, server, client, server, server_certificate(snapshot, server, client))
    own_key = key_of(snapshot, own)
    with opened_key(store.directory, own_key, prompt) as key, closing(listening(address, port)) as listener:
        end = tls_credentials(snapshot, server, own, key)
        judge = _judge(snapshot, end, client, Purpose.TLS_CLIENT, None)
        found = where(*listener.getsockname()[:2])
        progress.say(f"{server.name} waits at {found} for a connection of {client.name}, {waiting_s:g} s at most.")
        options = HandshakeOptions(judge, client.name, HANDSHAKE_S, watch=progress.watch)

        def failed(handshake: Handshake) -> None:
            progress.say(f"{RemoteProof(client, server, handshake).sentence()} Still waiting.")

        handshake = answer(end, listener, waiting_s, options, failed)
    proof = RemoteProof(client, server, handshake)
    if proof.ok:
        _record(store, proof, client, CertificateProfile.TLS_CLIENT, own)
    return proof


def own_certificate(snapshot: Snapshot, a: str, b: str, *, connects: bool) -> CertificateRecord:
    """The certificate that A presents to B as its client or server. Raises UserError: none, or A is not local."""
    here, there = _pair(snapshot, a, b)
    if connects:
        return _own(snapshot, here, here, there, client_certificate(snapshot, here, there))
    return _own(snapshot, here, there, here, server_certificate(snapshot, here, there))


def _pair(snapshot: Snapshot, a: str, b: str) -> tuple[State, State]:
    here, there = local_state_named(snapshot, a), state_named(snapshot, b)
    if here == there:
        raise UserError(f"{here.name} does not connect to itself: name another State.")
    return here, there


def _own(
    snapshot: Snapshot, here: State, client: State, server: State, certificate: CertificateRecord | None
) -> CertificateRecord:
    if certificate is None or certificate.key is None:
        steps = direction_of(snapshot, client, server).steps
        kinds = _SERVER_STEPS if here == server else _CLIENT_STEPS
        todo = next((step.missing for step in steps if step.kind in kinds and not step.done), "it has no certificate.")
        raise UserError(f"{client.name} cannot connect to {server.name} yet: {todo}")
    return certificate


def _known_name(record: CertificateRecord | None) -> str:
    """The name of the server whose certificate is known; empty for a wildcard name."""
    name = "" if record is None else server_name(record.certificate) or ""
    return "" if name.startswith("*") else name


def _judge(snapshot: Snapshot, end: TlsCredentials, other: State, purpose: Purpose, name: str | None) -> Judge:
    """Judges the peer as `end` does, then checks that it is `other`: `end` accepts clients of third States, too."""
    authorities = tuple(
        record.certificate
        for record in snapshot.certificates
        if record.state == other.id and record.profile in AUTHORITIES and record.removed is None
    )
    below = replace(end, roots=authorities, pins=())

    def judge(presented: Sequence[x509.Certificate]) -> tuple[bool, str]:
        accepted, why = end.judge(presented, purpose, name)
        if not accepted:
            return False, why
        known = snapshot.certificate_by_sha256.get(fingerprint(presented[0]))
        if known is not None and known.revoked is not None:  # perhaps not yet in a CRL
            return False, f"{short_name(presented[0])} was revoked on {known.revoked.at:%Y-%m-%d %H:%M} UTC."
        owner = None if known is None else known.state
        if owner is None and below.judge(presented, purpose, name)[0]:
            owner = other.id
        if owner == other.id:
            return True, why
        whose = "no State in this database" if owner is None else snapshot.state_by_id[owner].name
        return False, f"{short_name(presented[0])} is trusted, but it is a certificate of {whose}, not of {other.name}."

    return judge


def _record(
    store: PkiStore, proof: RemoteProof, other: State, profile: CertificateProfile, own: CertificateRecord
) -> None:
    """Add the proof, and the certificate that the other State presented with the intermediates in its path."""
    leaf, *intermediates = _path(proof.handshake.presented)
    with store.change() as change:
        add_chain(change, intermediates)
        shown = change.add_certificate(leaf, state=other.id, profile=profile, origin=Origin.IMPORTED)
        pair = (own.id, shown.id) if other == proof.server else (shown.id, own.id)
        detail = f"{handshake_detail(proof.handshake)}, {proof.handshake.peer}"
        change.add_proof(proof.client.id, proof.server.id, *pair, detail)


def _path(presented: Sequence[x509.Certificate]) -> list[x509.Certificate]:
    """The end certificate, then those of `presented` that certify it."""
    path = [presented[0]]
    others = [certificate for certificate in presented[1:] if certificate.issuer != certificate.subject]
    while above := next((each for each in others if each not in path and issued_by(path[-1], each)), None):
        path.append(above)
    return path


class _RemoteParameters(UnlockParameters):
    """A State of this console, and one elsewhere."""

    state_a: str = parameter(
        "State here", "Name of a State of this console, whose key is used", min_length=1, positional=True, metavar="A"
    )
    state_b: str = parameter(
        "Other State", "Name of the State at the other end", min_length=1, positional=True, metavar="B"
    )


class ConnectParameters(_RemoteParameters):
    """A State of this console that connects to another one's server."""

    host: str = parameter("Host", "Where the other State waits: host name or IP address", min_length=1, metavar="H")
    port: int = parameter("Port", "TCP port at that host", default=AMQPS_PORT, ge=1, le=65_535, metavar="P")
    server_name: str = parameter(
        "Name of its server",
        (
            "Name that the server's certificate must have. Empty: that of the certificate in this database, else the "
            "host"
        ),
        default="",
        empty="As its certificate says, else the host",
        option="--name",
        metavar="NAME",
    )
    foreign: bool = parameter(
        "Another TLS server than a console",
        (
            "Such as an AMQPS broker: nothing is sent to it, and it counts as proven if it asks for the "
            "client's certificate and does not refuse it within 3 s"
        ),
        default=False,
    )


class ListenParameters(_RemoteParameters):
    """A State of this console that waits for another one's connection."""

    address: str = parameter(
        "Address",
        (
            "IP address of this computer at which it waits: 127.0.0.1 is for this computer only, 0.0.0.0 "
            "for all its networks"
        ),
        default=LOOPBACK,
        min_length=1,
        metavar="ADDRESS",
    )
    port: int = parameter("Port", "TCP port; 0: any free one", default=AMQPS_PORT, ge=0, le=65_535, metavar="P")
    wait_s: int = parameter(
        "Wait at most",
        "How long it waits for the one connection, in seconds",
        default=300,
        ge=1,
        le=86_400,
        unit="s",
        option="--wait",
        metavar="S",
    )


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
        return key_secrets(directory, snapshot, shown, unlock=parameters.unlock())

    def work(self, parameters: ConnectParameters, store: PkiStore, prompt: Prompt, context: OperationContext) -> Result:
        place = PeerAddress(parameters.host, parameters.port, parameters.server_name, parameters.foreign)
        here, there, progress = parameters.state_a, parameters.state_b, _proof_progress(context, HANDSHAKE_S)
        return _result(lambda: connect_to(store, here, there, place, prompt, progress))


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
        return key_secrets(directory, snapshot, shown, unlock=parameters.unlock())

    def work(self, parameters: ListenParameters, store: PkiStore, prompt: Prompt, context: OperationContext) -> Result:
        at = (parameters.address, parameters.port, parameters.wait_s)
        here, there, progress = parameters.state_a, parameters.state_b, _proof_progress(context, parameters.wait_s)
        return _result(lambda: listen_for(store, here, there, *at, prompt, progress))


def _proof_progress(context: OperationContext, limit_s: float) -> ProofProgress:
    """Reports each second of the time limit that has passed; the context says whether the operator cancelled."""
    reported = -1

    def watch(left: float) -> bool:
        nonlocal reported
        gone = max(0, floor(limit_s - left))
        if gone != reported:  # at the moment when it changes, so that the time left is right
            reported = gone
            context.progress(gone, round(limit_s))
        return context.stop_requested

    return ProofProgress(context.say, watch)


def _result(prove: Callable[[], RemoteProof]) -> Result:
    try:
        proof = prove()
    except WaitCancelledError as error:
        return Result((str(error),), passed=False)
    ends = {"client": proof.client.name, "server": proof.server.name, "peer": proof.handshake.peer}
    return Result((proof.sentence(),), {**ends, **as_json(proof.handshake)}, passed=proof.ok)
