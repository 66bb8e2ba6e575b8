"""Progress of the exchange between two States: each step, done or missing, and the next one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from labconsole.model.operation import Result
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import CertificateRecord, Item, RequestRecord, RequestStatus, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.names import short_name
from labconsole_certificates.exchange.credentials import (
    CLIENT_PROFILES,
    SERVER_PROFILES,
    client_certificate,
    newest_request,
    revocation,
    revoked_certificate,
    server_certificate,
)
from labconsole_certificates.operations.pki_operation import PkiReport
from labconsole_certificates.operations.record_lookup import state_named
from labconsole_certificates.trust.matrix import trusted_by


class ExchangeStepKind(StrEnum):
    """Kinds of steps."""

    MAKE_ROOT = "make-root"
    TRUST_ROOT = "trust-root"
    MAKE_SERVER = "make-server"
    MAKE_REQUEST = "make-request"
    GIVE_REQUEST = "give-request"
    APPROVE = "approve"
    GIVE_CERTIFICATE = "give-certificate"
    PROVE = "prove"


@dataclass(frozen=True)
class ExchangeStep:
    """One step of the exchange. `item` goes from `sender` to `receiver`: the same State if nothing is sent."""

    kind: ExchangeStepKind
    title: str
    """The action, as in "B gives its root to A, which trusts it"."""
    sender: int
    receiver: int
    item: Item | None
    done: bool
    at: datetime | None
    """When it was done, if that is known."""
    missing: str
    """What to do next, in one sentence; empty when it is done."""
    subject: int | None
    """Row of its certificate (GIVE_REQUEST, APPROVE: of the request), if there is one."""


@dataclass(frozen=True)
class Direction:
    """`[client] -> tls-connect -> [server]`: all steps until a handshake proves it."""

    client: State
    server: State
    steps: tuple[ExchangeStep, ...]

    @property
    def proven(self) -> datetime | None:
        """When a handshake last passed with the current certificates."""
        return self.steps[-1].at

    @property
    def next(self) -> ExchangeStep | None:
        """The first step that is missing."""
        return next((step for step in self.steps if not step.done), None)


@dataclass(frozen=True)
class Exchange:
    """Both directions between two States."""

    there: Direction
    back: Direction


def exchange_of(snapshot: Snapshot, a: str, b: str) -> Exchange:
    """The progress of A and B in both directions. Raises UserError: there is no such State."""
    one, other = state_named(snapshot, a), state_named(snapshot, b)
    return Exchange(direction_of(snapshot, one, other), direction_of(snapshot, other, one))


def direction_of(snapshot: Snapshot, client: State, server: State) -> Direction:
    """The progress until `client` can connect to `server`."""
    return Direction(client, server, tuple(_Steps(snapshot, client, server).all()))


class _Steps:
    """The steps of one direction, each with its state in the database."""

    def __init__(self, snapshot: Snapshot, client: State, server: State) -> None:
        self._snapshot = snapshot
        self._client = client
        self._server = server
        self._client_certificate = client_certificate(snapshot, client, server)
        self._server_certificate = server_certificate(snapshot, server, client)

    def all(self) -> Iterator[ExchangeStep]:
        """All steps in their order."""
        if self._server.local:
            yield self._root()
        yield self._trust()
        if self._server.local:
            yield self._server_end()
        request = newest_request(self._snapshot, self._client, self._server)
        if request is None and self._client_certificate is not None:
            yield self._without_request(self._client_certificate)
        else:
            yield from self._csr_method(request)
        yield self._proof()

    def _root(self) -> ExchangeStep:
        roots = self._snapshot.roots_of(self._server.id)
        name = self._server.name
        return _step(
            ExchangeStepKind.MAKE_ROOT,
            f"{name} has a CA of its own",
            (self._server, self._server, None),
            done=bool(roots),
            at=roots[-1].made if roots else None,
            missing=f"Create or import the root of {name}.",
            subject=roots[0].id if roots else None,
        )

    def _trust(self) -> ExchangeStep:
        client, server = self._client, self._server
        trusted = trusted_by(self._snapshot, client.id)
        roots = self._snapshot.roots_of(server.id)
        anchors = [*roots, *([self._server_certificate] if self._server_certificate is not None else [])]
        found = next((each for each in anchors if each.sha256 in trusted), None)
        row = next(
            (
                each
                for each in self._snapshot.trust
                if found is not None and (each.state, each.certificate) == (client.id, found.id)
            ),
            None,
        )
        about = found or next(iter(roots), None)
        shown_at = None if client.local else self._passed_at()
        return _step(
            ExchangeStepKind.TRUST_ROOT,
            f"{server.name} gives its root to {client.name}, which trusts it",
            (server, client, Item.ROOT),
            done=found is not None or shown_at is not None,
            at=row.since if row is not None else shown_at,
            missing=f"{client.name} imports bundle or root of {server.name}, and confirms its fingerprint.",
            subject=about.id if about is not None else None,
        )

    def _server_end(self) -> ExchangeStep:
        name, certificate = self._server.name, self._server_certificate
        return _step(
            ExchangeStepKind.MAKE_SERVER,
            f"{name} has a certificate for its server",
            (self._server, self._server, None),
            done=certificate is not None,
            at=certificate.made if certificate is not None else None,
            missing=f"{self._why_gone(self._server, SERVER_PROFILES)}"
            f"{name} creates a request to its own CA with the profile TLS server, and approves it.",
            subject=certificate.id if certificate is not None else None,
        )

    def _without_request(self, certificate: CertificateRecord) -> ExchangeStep:
        client, server = self._client, self._server
        own = certificate.self_signed
        return _step(
            ExchangeStepKind.GIVE_CERTIFICATE,
            f"{server.name} has pinned the certificate of {client.name}"
            if own
            else f"{server.name} created key and certificate for {client.name} (No-CSR method)",
            (client, server, Item.CERTIFICATE) if own else (server, client, Item.PKCS12),
            done=True,
            at=certificate.made,
            missing="",
            subject=certificate.id,
        )

    def _csr_method(self, request: RequestRecord | None) -> Iterator[ExchangeStep]:
        client, server = self._client, self._server
        refused = request is not None and request.status is RequestStatus.REFUSED
        why = f"{server.name} refused the last one ({request.reason}): " if request is not None and refused else ""
        why = why or self._why_gone(client, CLIENT_PROFILES)
        asked = None if refused else request
        number = None if asked is None else asked.id
        yield _step(
            ExchangeStepKind.MAKE_REQUEST,
            f"{client.name} creates key pair and CSR for the CA of {server.name}",
            (client, client, None),
            done=asked is not None,
            at=None if asked is None else asked.made,
            missing=f"{why}{client.name} creates a request with the profile TLS client; the key stays with it.",
            subject=number,
        )
        given_at = None if asked is None else self._was_handed_over(client, server, Item.CSR, asked.sha256)
        arrived = asked is not None and asked.status is not RequestStatus.MADE
        yield _step(
            ExchangeStepKind.GIVE_REQUEST,
            f"{client.name} gives the CSR to {server.name}",
            (client, server, Item.CSR),
            done=arrived or given_at is not None,
            at=given_at,
            missing=f"Give the CSR to {server.name}, which takes it in.",
            subject=number,
        )
        approved = asked is not None and asked.status is RequestStatus.APPROVED
        yield _step(
            ExchangeStepKind.APPROVE,
            f"{server.name} checks the CSR and approves it",
            (server, server, None),
            done=approved,
            at=asked.decided if asked is not None and approved else None,
            missing=f"{server.name} approves the request, or refuses it with a reason.",
            subject=number,
        )
        yield self._certificate_back(asked)

    def _why_gone(self, owner: State, profiles: frozenset[CertificateProfile]) -> str:
        """The beginning of a sentence on the certificate that was revoked; empty where none was."""
        record = revoked_certificate(self._snapshot, owner, self._server, profiles)
        if record is None:
            return ""
        return f"{short_name(record.certificate)} was revoked on {revocation(self._snapshot, record)}: "

    def _certificate_back(self, request: RequestRecord | None) -> ExchangeStep:
        client, server = self._client, self._server
        number = None if request is None else request.certificate
        record = None if number is None else self._snapshot.certificate_by_id[number]
        given_at = None if record is None else self._was_handed_over(server, client, Item.CERTIFICATE, record.sha256)
        came = record is not None and (self._used(record) or (record.key is not None and not server.local))
        return _step(
            ExchangeStepKind.GIVE_CERTIFICATE,
            f"{server.name} gives the certificate to {client.name}",
            (server, client, Item.CERTIFICATE),
            done=came or given_at is not None,
            at=given_at if given_at is not None or record is None or not came else record.made,
            missing=f"Give certificate and chain to {client.name}, which takes them in.",
            subject=number,
        )

    def _proof(self) -> ExchangeStep:
        client, server = self._client, self._server
        passed_at = self._passed_at()
        return _step(
            ExchangeStepKind.PROVE,
            f"{client.name} connects to {server.name}: mutual TLS handshake",
            (client, server, None),
            done=passed_at is not None,
            at=passed_at,
            missing=self._how_to_prove(),
            subject=None if self._client_certificate is None else self._client_certificate.id,
        )

    def _passed_at(self) -> datetime | None:
        """When a handshake last passed with the current certificates: proof of the client's trust."""
        used = (self._client_certificate, self._server_certificate)
        ids = [None if each is None else each.id for each in used]
        passed = (
            each.at
            for each in self._snapshot.proofs
            if [each.client, each.server, each.client_certificate, each.server_certificate]
            == [self._client.id, self._server.id, *ids]
        )
        return max(passed, default=None)

    def _how_to_prove(self) -> str:
        client, server = self._client, self._server
        match client.local, server.local:
            case True, True:
                return "Prove it by a real TLS handshake."
            case True, False:
                return f"The keys of {server.name} lie elsewhere: connect to its console, which waits, or its broker."
            case False, True:
                return f"The keys of {client.name} lie elsewhere: wait here for the connection of its console."
        return f"The keys of {client.name} and {server.name} lie elsewhere: their consoles prove it."

    def _used(self, certificate: CertificateRecord) -> bool:
        """Whether a handshake has passed with it, so that the client has it."""
        return any(each.client_certificate == certificate.id for each in self._snapshot.proofs)

    def _was_handed_over(self, sender: State, receiver: State, item: Item, sha256: str) -> datetime | None:
        """When that item was last sent from one to the other."""
        what = (sender.id, receiver.id, item, sha256)
        found = (
            each.at for each in self._snapshot.handovers if (each.sender, each.receiver, each.item, each.sha256) == what
        )
        return max(found, default=None)


def _step(
    kind: ExchangeStepKind,
    title: str,
    way: tuple[State, State, Item | None],
    *,
    done: bool,
    at: datetime | None,
    missing: str,
    subject: int | None,
) -> ExchangeStep:
    sender, receiver, item = way
    return ExchangeStep(
        kind, title, sender.id, receiver.id, item, done, at if done else None, "" if done else missing, subject
    )


class PairParameters(Parameters):
    """Two States."""

    state_a: str = parameter("One State", "Name of a State", min_length=1, positional=True, metavar="A")
    state_b: str = parameter("Other State", "Name of the other State", min_length=1, positional=True, metavar="B")


class ShowExchange(PkiReport[PairParameters]):
    """Shows how far two States are."""

    name: ClassVar[str] = "certificates.exchange"
    title: ClassVar[str] = "Progress of an exchange"
    description: ClassVar[str] = (
        "Shows each step until the two States can connect to each other, and what is missing next."
    )
    parameters: ClassVar[type[Parameters]] = PairParameters

    def read(self, parameters: PairParameters, reader: PkiReader) -> Result:
        found = exchange_of(reader.snapshot(), parameters.state_a, parameters.state_b)
        lines, directions = [], []
        for direction in (found.there, found.back):
            lines.append(f"[{direction.client.name}] -> tls-connect -> [{direction.server.name}]")
            lines += [f"  {'done   ' if step.done else 'missing'}  {step.title}" for step in direction.steps]
            missing = "" if direction.next is None else direction.next.missing
            if missing:
                lines.append(f"  Next: {missing}")
            steps = [{"step": str(step.kind), "title": step.title, "done": step.done} for step in direction.steps]
            ends = {"client": direction.client.name, "server": direction.server.name}
            directions.append({**ends, "steps": steps, "next": missing})
        complete = found.there.next is None and found.back.next is None
        data: dict[str, Any] = {"complete": complete, "directions": directions}
        return Result(("\n".join(lines),), data, passed=complete)
