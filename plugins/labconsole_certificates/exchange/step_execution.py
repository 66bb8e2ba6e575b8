"""Executes a step of an exchange between two States of this console, with the proposed values."""

from __future__ import annotations

from datetime import UTC, datetime

from labconsole.errors import UserError
from labconsole.security.pki.keys import key_secret
from labconsole.security.pki.records import CertificateRecord, RequestRecord, RequestStatus, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, missing_secrets
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole_certificates.exchange.credentials import client_certificate, server_certificate
from labconsole_certificates.exchange.progress import Direction, Exchange, ExchangeStepKind, direction_of
from labconsole_certificates.exchange.tls_proof import handshake_report, prove
from labconsole_certificates.operations.export import Form, exported
from labconsole_certificates.operations.issuing import server_host
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.own_csrs import import_certificate, make_request
from labconsole_certificates.operations.received_csrs import approve, import_request
from labconsole_certificates.operations.record_lookup import authorities_of, authority_of, key_of
from labconsole_certificates.trust.roots_and_pins import confirm_here


def next_direction(exchange: Exchange) -> Direction | None:
    """The direction whose next step comes first; handshakes prove both at once, so they come last."""
    open_ways = [way for way in (exchange.there, exchange.back) if way.next is not None]
    return min(
        open_ways, key=lambda way: way.next is not None and way.next.kind is ExchangeStepKind.PROVE, default=None
    )


def asks_for_secrets(store: PkiStore, direction: Direction) -> bool:
    """Whether the next step needs a passphrase or PIN, and so a dialog."""
    snapshot = store.snapshot()
    used = [key_of(snapshot, each) for each in _signers(snapshot, direction)]
    return bool(missing_secrets(key_secret(store.directory, key) for key in used))


def execute_next_step(store: PkiStore, direction: Direction, prompt: Prompt | None = None) -> str:
    """Execute the next step of `direction`; one sentence on the result, or None if it was done meanwhile.

    Between two States of one console nothing has to be sent: a request is given to its issuer at once, and the
    certificate is given back. Keys are of the type of their State's CA.
    Raises UserError: a State is not of this console, the step needs a dialog, a handshake fails.
    """
    snapshot = store.snapshot()
    client, server = direction.client, direction.server
    step = direction_of(snapshot, client, server).next
    if step is None or direction.next is None or step.kind is not direction.next.kind:
        return ""
    match step.kind:
        case ExchangeStepKind.TRUST_ROOT if step.subject is not None:
            confirm_here(store, client, snapshot.certificate_by_id[step.subject])
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
