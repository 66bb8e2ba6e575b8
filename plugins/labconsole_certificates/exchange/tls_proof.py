"""Proves an exchange: real mutual TLS handshakes between the identities of two States."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import ClassVar

from cryptography import x509

from labconsole.errors import UserError
from labconsole.model.operation import OperationContext, Result
from labconsole.model.trial import Parameters
from labconsole.security.pki.domains import path_refusal
from labconsole.security.pki.keys import opened_key
from labconsole.security.pki.known_crls import crls_under
from labconsole.security.pki.records import CertificateRecord, State, TrustKind
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.security.x509.extensions import alternative_names
from labconsole.security.x509.key_types import PrivateKey
from labconsole.security.x509.names import general_name_as_text
from labconsole_certificates.exchange.credentials import client_certificate, server_certificate
from labconsole_certificates.exchange.handshake import Handshake, perform_handshake
from labconsole_certificates.exchange.progress import PairParameters, direction_of
from labconsole_certificates.exchange.tls_context import TlsCredentials
from labconsole_certificates.operations.parameter_fields import UnlockParameters
from labconsole_certificates.operations.pki_operation import PkiOperation, key_secrets
from labconsole_certificates.operations.record_lookup import key_of, local_state_named


@dataclass(frozen=True)
class Proof:
    """The handshakes of both directions."""

    there: Handshake
    """`[A] -> tls-connect -> [B]`."""
    back: Handshake
    """`[B] -> tls-connect -> [A]`."""

    @property
    def ok(self) -> bool:
        """Whether both passed."""
        return self.there.ok and self.back.ok


def prove(store: PkiStore, a: str, b: str, prompt: Prompt | None = None) -> Proof:
    """The handshakes of A with B and of B with A, each with its certificates and trust; those that pass are recorded.

    Raises UserError: a State is not local, an end has no certificate (the sentence says what is missing), or a key
    cannot be opened.
    """
    snapshot = store.snapshot()
    one, other = local_state_named(snapshot, a), local_state_named(snapshot, b)
    ways = ((one, other), (other, one))
    pairs = [presented_certificates(snapshot, *way) for way in ways]
    with ExitStack() as opened:
        keys = {
            number: opened.enter_context(opened_key(store.directory, key_of(snapshot, record), prompt))
            for number, record in {record.key: record for pair in pairs for record in pair}.items()
        }
        handshakes = [
            perform_handshake(
                tls_credentials(snapshot, client, presented, keys[presented.key]),
                tls_credentials(snapshot, server, answered, keys[answered.key]),
                server_name(answered.certificate),
            )
            for (client, server), (presented, answered) in zip(ways, pairs, strict=True)
        ]
    with store.change() as change:
        for (client, server), (presented, answered), handshake in zip(ways, pairs, handshakes, strict=True):
            if handshake.ok:
                change.add_proof(client.id, server.id, presented.id, answered.id, handshake_detail(handshake))
    return Proof(*handshakes)


def presented_certificates(
    snapshot: Snapshot, client: State, server: State
) -> tuple[CertificateRecord, CertificateRecord]:
    """The certificates of client and server when `client` connects to `server`.

    Raises UserError: something is missing, and what.
    """
    pair = client_certificate(snapshot, client, server), server_certificate(snapshot, server, client)
    if pair[0] is None or pair[0].key is None or pair[1] is None or pair[1].key is None:
        step = direction_of(snapshot, client, server).next
        todo = "one of them has no certificate." if step is None else step.missing
        raise UserError(f"{client.name} cannot connect to {server.name} yet: {todo}")
    return pair[0], pair[1]


def tls_credentials(
    snapshot: Snapshot, state: State, certificate: CertificateRecord, key: PrivateKey
) -> TlsCredentials:
    """The credentials of `state` for a handshake: its certificate, chain and key, and what it trusts."""
    roots = snapshot.trusted_by(state.id, TrustKind.ROOT)
    pins = snapshot.trusted_by(state.id, TrustKind.PIN)
    return TlsCredentials(
        certificate=certificate.certificate,
        chain=tuple(each.certificate for each in snapshot.presented_chain(certificate, datetime.now(UTC))),
        key=key,
        roots=tuple(each.certificate for each in roots),
        crls=crls_under(snapshot, roots),
        pins=frozenset(each.sha256 for each in pins if each.revoked is None),
        names_refused=partial(path_refusal, snapshot),
    )


def server_name(certificate: x509.Certificate) -> str | None:
    """The name by which a client calls the server: the first of its certificate (RFC 9525, 6.1)."""
    names = alternative_names(certificate.extensions)
    hosts = (each for each in names if isinstance(each, x509.DNSName | x509.IPAddress))
    first = next(hosts, None)
    if isinstance(first, x509.DNSName):
        return first.value
    return None if first is None else general_name_as_text(first).removeprefix("IP:")


def handshake_report(client: str, server: str, handshake: Handshake) -> str:
    """The result of a handshake of these two States, in one or two sentences."""
    way = f"[{client}] -> tls-connect -> [{server}]"
    if handshake.ok:
        return f"{way} passed ({handshake_detail(handshake)}; {handshake.duration_ns / 1e6:.1f} ms)."
    return (
        f"{way} failed. {client}: {handshake.client_report or 'nothing.'} "
        f"{server}: {handshake.server_report or 'nothing.'}"
    )


def handshake_detail(handshake: Handshake) -> str:
    """Protocol, cipher and group in a few words."""
    return ", ".join(filter(None, (handshake.protocol, handshake.cipher, handshake.group)))


class ProveParameters(UnlockParameters, PairParameters):
    """Two States that connect to each other, both ways."""


class Prove(PkiOperation[ProveParameters]):
    """Lets two States connect to each other."""

    name: ClassVar[str] = "certificates.prove"
    title: ClassVar[str] = "Prove by a handshake"
    description: ClassVar[str] = (
        "Each of the two States connects to the other one by mutual TLS over a socket of this machine, with the "
        "certificates that it has and the trust that it has."
    )
    parameters: ClassVar[type[Parameters]] = ProveParameters

    def needs(self, parameters: ProveParameters, directory: Path, snapshot: Snapshot) -> tuple[SecretRequest, ...]:
        a, b = (local_state_named(snapshot, name) for name in (parameters.state_a, parameters.state_b))
        ends = (
            *(client_certificate(snapshot, a, b), server_certificate(snapshot, b, a)),
            *(client_certificate(snapshot, b, a), server_certificate(snapshot, a, b)),
        )
        found = (end for end in ends if end is not None)
        requests = key_secrets(directory, snapshot, *found, unlock=parameters.unlock())
        return tuple({request.key: request for request in requests}.values())

    def work(self, parameters: ProveParameters, store: PkiStore, prompt: Prompt, context: OperationContext) -> Result:
        a, b = parameters.state_a, parameters.state_b
        proof = prove(store, a, b, prompt)
        ways = ((a, b, proof.there), (b, a, proof.back))
        data = [{"client": client, "server": server, **as_json(handshake)} for client, server, handshake in ways]
        return Result(tuple(handshake_report(*way) for way in ways), {"handshakes": data}, passed=proof.ok)


def as_json(handshake: Handshake) -> dict[str, object]:
    """The JSON object of a handshake."""
    return {
        "ok": handshake.ok,
        "protocol": handshake.protocol,
        "cipher": handshake.cipher,
        "group": handshake.group,
        "duration_ms": handshake.duration_ns / 1e6,
        "client_said": handshake.client_report,
        "server_said": handshake.server_report,
    }
