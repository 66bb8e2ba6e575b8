"""The next step of an exchange between two States of this console, done with the proposed values."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from labconsole.errors import UserError
from labconsole.model.operation import Confirmation, OperationContext, Result
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import CertificateRecord, RequestRecord, RequestStatus, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.fingerprints import grouped, typed_matches
from labconsole.security.x509.names import short_name
from labconsole_certificates.exchange.credentials import client_certificate, server_certificate
from labconsole_certificates.exchange.progress import (
    Direction,
    Exchange,
    ExchangeStep,
    ExchangeStepKind,
    direction_of,
)
from labconsole_certificates.exchange.tls_proof import handshake_report, prove
from labconsole_certificates.operations.export import Form, exported
from labconsole_certificates.operations.issuing import server_host
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.own_csrs import import_certificate, make_request
from labconsole_certificates.operations.parameter_fields import UnlockParameters
from labconsole_certificates.operations.pki_operation import PkiOperation, key_secrets
from labconsole_certificates.operations.received_csrs import approve, import_request
from labconsole_certificates.operations.record_lookup import (
    authorities_of,
    authority_of,
    key_of,
    local_state_named,
)
from labconsole_certificates.trust.roots_and_pins import CONFIRMED_HERE, confirm_here


def next_direction(exchange: Exchange) -> Direction | None:
    """The direction whose next step comes first; handshakes prove both at once, so they come last."""
    open_ways = [way for way in (exchange.there, exchange.back) if way.next is not None]
    return min(
        open_ways, key=lambda way: way.next is not None and way.next.kind is ExchangeStepKind.PROVE, default=None
    )


def proposed_server_request(snapshot: Snapshot, server: State) -> RequestRecord | None:
    """The request of `server` for its own server that waits for a decision."""
    return next(
        (
            request
            for request in reversed(snapshot.requests)
            if request.requester == request.issuer == server.id
            and request.profile is CertificateProfile.TLS_SERVER
            and request.status in (RequestStatus.MADE, RequestStatus.RECEIVED)
        ),
        None,
    )


class ExchangeStepParameters(UnlockParameters):
    """A direction of an exchange between two States of this console."""

    state_a: str = parameter("Client", "State that is to connect", min_length=1, positional=True, metavar="CLIENT")
    state_b: str = parameter("Server", "State that it connects to", min_length=1, positional=True, metavar="SERVER")
    step: ExchangeStepKind | None = parameter(
        "Step", "Step that is expected to be the next; nothing is done if another one is", default=None, empty="Any"
    )
    confirmed: str = parameter(
        "Confirmed fingerprint",
        "Whole fingerprint of the root that the client trusts by this step; not given: it is asked for",
        default="",
        metavar="FINGERPRINT",
        terminal_only=True,
    )

    def direction(self, snapshot: Snapshot) -> Direction:
        """The direction. Raises UserError: a State is not of this console."""
        return direction_of(
            snapshot, local_state_named(snapshot, self.state_a), local_state_named(snapshot, self.state_b)
        )


class DoExchangeStep(PkiOperation[ExchangeStepParameters]):
    """Does the next step of an exchange between two States of this console, with the proposed values.

    Between two States of one console nothing has to be sent: a request is given to its issuer at once, and the
    certificate is given back. Keys are of the type of their State's CA.
    """

    name: ClassVar[str] = "certificates.exchange-step"
    title: ClassVar[str] = "Next step of an exchange"
    description: ClassVar[str] = (
        "Does the next step until one State of this console can connect to another one of it, with the proposed "
        "values: nothing has to be sent between them."
    )
    parameters: ClassVar[type[Parameters]] = ExchangeStepParameters

    def confirmation(self, parameters: ExchangeStepParameters) -> Confirmation | None:
        with PkiReader.open() as reader:
            snapshot = reader.snapshot()
        direction = parameters.direction(snapshot)
        root = _root_to_trust(snapshot, direction)
        if root is None or parameters.confirmed:
            return None
        shown = f"{short_name(root.certificate)}, the root of {direction.server.name}: {grouped(root.sha256)}."
        return Confirmation(CONFIRMED_HERE, f"{direction.client.name} will trust {shown}", "--confirmed FINGERPRINT")

    def needs(
        self, parameters: ExchangeStepParameters, directory: Path, snapshot: Snapshot
    ) -> tuple[SecretRequest, ...]:
        signers = _signers(snapshot, parameters.direction(snapshot))
        requests = key_secrets(directory, snapshot, *signers, unlock=parameters.unlock())
        return tuple({request.key: request for request in requests}.values())

    def work(
        self, parameters: ExchangeStepParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        direction = parameters.direction(store.snapshot())
        client, server, step = direction.client.name, direction.server.name, direction.next
        done = step is not None and parameters.step in (None, step.kind)
        if step is None:
            said = f"Nothing was done: {client} has proven already that it can connect to {server}."
        elif not done:
            said = f"Nothing was done, for another step is next: {step.missing}"
        else:
            said = self._do(parameters, store, direction, step, prompt)
        next_step = parameters.direction(store.snapshot()).next
        data = {
            "client": client,
            "server": server,
            "step": str(step.kind) if done and step is not None else "",
            "next": "" if next_step is None else next_step.missing,
        }
        return Result((said,), data)

    def _do(
        self,
        parameters: ExchangeStepParameters,
        store: PkiStore,
        direction: Direction,
        step: ExchangeStep,
        prompt: Prompt,
    ) -> str:
        """Do it; returns a sentence on the result. Raises UserError: it needs other values, or a handshake fails."""
        snapshot = store.snapshot()
        client, server = direction.client, direction.server
        match step.kind:
            case ExchangeStepKind.TRUST_ROOT if step.subject is not None:
                root = snapshot.certificate_by_id[step.subject]
                if parameters.confirmed and not typed_matches(root.sha256, parameters.confirmed):
                    raise UserError(
                        f"That is not the fingerprint of {short_name(root.certificate)}, so nothing is trusted: "
                        "compare all of it."
                    )
                confirm_here(store, client, root)
                return f"{client.name} trusts the root of {server.name}."
            case ExchangeStepKind.MAKE_SERVER:
                _certify_server(store, snapshot, server, prompt)
                return f"{server.name} has a certificate for its server."
            case ExchangeStepKind.MAKE_REQUEST | ExchangeStepKind.GIVE_REQUEST:
                made = (
                    store.request(step.subject)
                    if step.kind is ExchangeStepKind.GIVE_REQUEST and step.subject is not None
                    else make_request(store, client, server, _new_key(snapshot, client), CertificateProfile.TLS_CLIENT)
                )
                import_request(store, client, server, made.der, made.profile)
                return f"{server.name} has request {made.id} of {client.name}."
            case ExchangeStepKind.APPROVE | ExchangeStepKind.GIVE_CERTIFICATE if step.subject is not None:
                record = (
                    approve(store, store.request(step.subject), prompt=prompt)
                    if step.kind is ExchangeStepKind.APPROVE
                    else snapshot.certificate_by_id[step.subject]
                )
                import_certificate(store, exported(store.snapshot(), record, Form.CHAIN), server)
                return f"{client.name} has its certificate by the CA of {server.name}."
            case ExchangeStepKind.PROVE:
                proof = prove(store, client.name, server.name, prompt)
                said = " ".join(
                    (
                        handshake_report(client.name, server.name, proof.there),
                        handshake_report(server.name, client.name, proof.back),
                    )
                )
                if not proof.ok:
                    raise UserError(said)
                return said
        raise UserError(step.missing)


def _root_to_trust(snapshot: Snapshot, direction: Direction) -> CertificateRecord | None:
    """The root that the client trusts by the next step; None: that is another step."""
    step = direction.next
    if step is None or step.kind is not ExchangeStepKind.TRUST_ROOT or step.subject is None:
        return None
    return snapshot.certificate_by_id[step.subject]


def _signers(snapshot: Snapshot, direction: Direction) -> list[CertificateRecord]:
    """The certificates whose private keys the next step uses."""
    client, server = direction.client, direction.server
    match None if direction.next is None else direction.next.kind:
        case ExchangeStepKind.MAKE_SERVER | ExchangeStepKind.APPROVE:
            return [authority_of(snapshot, server, "", datetime.now(UTC))]
        case ExchangeStepKind.PROVE:
            ends = (
                *(client_certificate(snapshot, client, server), server_certificate(snapshot, server, client)),
                *(client_certificate(snapshot, server, client), server_certificate(snapshot, client, server)),
            )
            return [end for end in ends if end is not None]
        case _:
            return []


def _certify_server(store: PkiStore, snapshot: Snapshot, server: State, prompt: Prompt | None) -> None:
    """A State certifies its own server by the same steps as another State's client."""
    request = proposed_server_request(snapshot, server) or make_request(
        store, server, server, _new_key(snapshot, server), CertificateProfile.TLS_SERVER, names=[server_host(server)]
    )
    approve(store, request, prompt=prompt)


def _new_key(snapshot: Snapshot, state: State) -> NewKey:
    """A key of the type of the State's CA: an RSA key also serves Tests 3 and 4."""
    able = authorities_of(snapshot, state, datetime.now(UTC))
    return NewKey(key_of(snapshot, able[0]).type) if able else NewKey()
