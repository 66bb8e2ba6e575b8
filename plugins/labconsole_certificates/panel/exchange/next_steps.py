"""The next step of an exchange, and the button that executes it or opens its dialog or tab."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QWidget

from labconsole.model.operation import Result
from labconsole.security.pki.records import CertificateRecord, RequestRecord, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.secrets import missing_secrets
from labconsole.security.x509.certificate_profiles import TEXTS
from labconsole.security.x509.names import general_name_as_text, name_as_text
from labconsole_certificates.exchange.progress import Direction, Exchange, ExchangeStep, ExchangeStepKind
from labconsole_certificates.exchange.step_execution import (
    DoExchangeStep,
    ExchangeStepParameters,
    next_direction,
    proposed_server_request,
)
from labconsole_certificates.operations import received_csrs
from labconsole_certificates.operations.issuing import server_host
from labconsole_certificates.panel.form_editors import fixed, one_name_of
from labconsole_certificates.panel.requests.request_forms import RequestForms
from labconsole_certificates.panel.requests.requests_view import RequestsView
from labconsole_certificates.panel.tab import TabWork
from labconsole_certificates.panel.trust.trust_dialog import TrustDialog


@dataclass(frozen=True)
class Upcoming:
    """The next step: a sentence, and the button's label (empty: no button) and action.

    `complete`: both directions are proven.
    """

    sentence: str
    button: str
    do: Callable[[], object]
    complete: bool = False
    waits: bool = False
    """Whether another console has to act first."""
    fingerprint: str = ""
    """SHA-256 (hex) that the button confirms, of a State of this console."""
    details: Callable[[], object] | None = None
    details_button: str = ""
    """Opens the dialog or tab of the step, to inspect it or use other values; None: it has none."""


class NextSteps(QObject):
    """Finds the next step, and what this console can do for each kind.

    `began`: a step is executed by a click, and no other one until it has `ended`: whether it is done now.
    """

    began = Signal()
    ended = Signal(bool)

    def __init__(self, tab_work: TabWork, page: QWidget) -> None:
        super().__init__(page)
        self._tab_work = tab_work
        self._page = page
        self._snapshot = Snapshot()
        self._working = False
        self._forms = RequestForms(tab_work.services, self)

    def refresh(self, snapshot: Snapshot) -> None:
        """Use this snapshot."""
        self._snapshot = snapshot
        self._forms.refresh(snapshot)

    def next_of(self, exchange: Exchange) -> Upcoming:
        """The next step of either direction: the first possible for this console, else the first that it waits for."""
        first = next_direction(exchange)
        if first is None:
            client, server = exchange.there.client, exchange.there.server
            again = self.tr("Prove it again …") if client.local and server.local else ""
            proven = self.tr("Both ways are proven.")
            return Upcoming(proven, again, lambda: self._prove(client, server), complete=True)
        ways = (first, exchange.back if first is exchange.there else exchange.there)
        pending = [self._upcoming(way, way.next) for way in ways if way.next is not None]
        return next((upcoming for upcoming in pending if not upcoming.waits), pending[0])

    def names_of(self, exchange: Exchange) -> str:
        """The names under which AMQP trials use the certificates of this exchange."""
        states = {
            exchange.there.client.id: exchange.there.client.name,
            exchange.back.client.id: exchange.back.client.name,
        }
        found = [entry for entry in self._snapshot.identities if entry.state in states]
        if not found:
            return self.tr("Give a certificate a name, and AMQP trials take it by that.")
        listed = ", ".join(f"{entry.name} ({states[entry.state]})" for entry in found)
        return self.tr("AMQP trials use these identities by name: {names}.").format(names=listed)

    def proof_of(self, direction: Direction) -> str:
        """Protocol, cipher and group of the newest handshake of this direction that passed."""
        pair = (direction.client.id, direction.server.id)
        return next(
            (proof.detail for proof in reversed(self._snapshot.proofs) if (proof.client, proof.server) == pair), ""
        )

    def remote_proof_of(self, direction: Direction) -> str:
        """The label of the button that proves this direction with a remote State; empty if that is not possible yet.

        Whether the remote State trusts this one is not always known here: a handshake shows it.
        """
        client, server = direction.client, direction.server
        done = {step.kind for step in direction.steps if step.done}
        if client.local and not server.local and ExchangeStepKind.GIVE_CERTIFICATE in done:
            return self.tr("Connect to {state} …").format(state=server.name)
        if server.local and not client.local and ExchangeStepKind.MAKE_SERVER in done:
            return self.tr("Wait for {state} …").format(state=client.name)
        return ""

    def prove_remotely(self, direction: Direction) -> None:
        """Connect to the remote State, or wait for its connection."""
        client, server = direction.client, direction.server
        name, here, there = (
            ("certificates.connect", client, server) if client.local else ("certificates.listen", server, client)
        )
        self._tab_work.services.open_action(
            name,
            {"state_a": here.name, "state_b": there.name},
            {"state_a": fixed(here.name, here.name), "state_b": fixed(there.name, there.name)},
        )

    def _upcoming(self, direction: Direction, step: ExchangeStep) -> Upcoming:
        """The next step of a direction; between two States of this console a click executes it, if possible."""
        by_dialog = self._by_dialog(direction, step)
        if not (direction.client.local and direction.server.local):
            return by_dialog
        button, sentence = self._short(direction, step)
        if not button:
            return by_dialog
        details, words = None, ""
        if step.kind in (ExchangeStepKind.MAKE_SERVER, ExchangeStepKind.MAKE_REQUEST):
            details, words = by_dialog.do, self.tr("With &other values …")
        elif step.kind is ExchangeStepKind.APPROVE:
            details, words = by_dialog.do, self.tr("&Inspect it …")
        root = self._certificate(step) if step.kind is ExchangeStepKind.TRUST_ROOT else None
        fingerprint = "" if root is None else root.sha256
        parameters = ExchangeStepParameters(
            state_a=direction.client.name, state_b=direction.server.name, step=step.kind, confirmed=fingerprint
        )
        do = partial(self._do_next, parameters, by_dialog.do)
        return Upcoming(sentence, button, do, fingerprint=fingerprint, details=details, details_button=words)

    def _short(self, direction: Direction, step: ExchangeStep) -> tuple[str, str]:
        """Button and sentence of a step that a click executes; no button: it needs a dialog."""
        client, server = direction.client.name, direction.server.name
        match step.kind:
            case ExchangeStepKind.TRUST_ROOT if step.subject is not None:
                sentence = self.tr("{client} takes the root of {server}, also of this console. Its fingerprint:")
                return self.tr("Confirm: {client} trusts {server}").format(client=client, server=server), (
                    sentence.format(client=client, server=server)
                )
            case ExchangeStepKind.MAKE_SERVER:
                sentence = self.tr("{server} creates a key and certifies its server {host} with its own CA.")
                return self.tr("Certify the server of {server}").format(server=server), (
                    sentence.format(server=server, host=server_host(direction.server))
                )
            case ExchangeStepKind.MAKE_REQUEST:
                sentence = self.tr(
                    "{client} creates key pair and CSR, and gives the CSR to {server}. The key stays with {client}."
                )
                return self.tr("Create the CSR of {client}").format(client=client), (
                    sentence.format(client=client, server=server)
                )
            case ExchangeStepKind.GIVE_REQUEST:
                return self.tr("Give the CSR to {server}").format(server=server), step.missing
            case ExchangeStepKind.APPROVE:
                return self._short_approval(step, server)
            case ExchangeStepKind.GIVE_CERTIFICATE:
                return self.tr("Give the certificate to {client}").format(client=client), step.missing
            case ExchangeStepKind.PROVE:
                return self.tr("Prove it by handshakes"), step.missing
            case _:
                return "", ""

    def _short_approval(self, step: ExchangeStep, server: str) -> tuple[str, str]:
        """A CSR is summarised; one with problems is decided in the requests tab, which shows all of it."""
        request = self._request(step)
        if request is None:
            return "", ""
        requester = self._snapshot.state_by_id[request.requester]
        judgement = received_csrs.judged(request.csr, requester)
        if judgement.problems:
            return "", ""
        asked = ", ".join((name_as_text(request.csr.subject), *map(general_name_as_text, judgement.names)))
        sentence = self.tr(
            "{client} asks {server} to certify {asked} ({profile}). Its signature proves that it has the key."
        )
        return self.tr("Approve it, and give it back"), sentence.format(
            client=requester.name, server=server, asked=asked, profile=TEXTS[request.profile].title
        )

    def _do_next(self, parameters: ExchangeStepParameters, by_dialog: Callable[[], object]) -> None:
        """Execute the step, once; by its dialog if a passphrase or PIN must be entered."""
        if self._working:
            return
        self._working = True
        self.began.emit()
        operation = DoExchangeStep()

        def read_missing() -> bool:
            return bool(missing_secrets(operation.secrets(parameters)))

        def known(missing: bool) -> None:
            if missing:
                self._end(done=False)
                by_dialog()
            else:
                self._tab_work.perform(operation, parameters.model_dump(mode="json"), self._done, self._failed)

        self._tab_work.submit(read_missing, known, self._failed)

    def _end(self, *, done: bool) -> None:
        self._working = False
        self.ended.emit(done)

    def _done(self, _result: Result) -> None:
        self._end(done=True)

    def _failed(self, sentence: str) -> None:
        self._end(done=False)
        self._tab_work.bad(sentence)

    def _by_dialog(self, direction: Direction, step: ExchangeStep) -> Upcoming:
        states = self._snapshot.state_by_id
        sender, receiver = states[step.sender], states[step.receiver]
        request = self._request(step)
        match step.kind:
            case ExchangeStepKind.MAKE_ROOT:
                button = self.tr("Create the CA of {state} …").format(state=sender.name)
                return Upcoming(step.missing, button, lambda: self._create_root(sender))
            case ExchangeStepKind.TRUST_ROOT:
                return self._trust_step(step, sender, receiver)
            case ExchangeStepKind.MAKE_SERVER:
                return self._server_step(step, sender)
            case ExchangeStepKind.MAKE_REQUEST if sender.local:
                button = self.tr("Create key and CSR of {state} …").format(state=sender.name)
                make = partial(self._forms.make_request, direction.client.name, direction.server.name)
                return Upcoming(step.missing, button, make)
            case ExchangeStepKind.APPROVE if request is not None and sender.local:
                return Upcoming(step.missing, self.tr("Look, and decide …"), lambda: self._show_requests(request))
            case ExchangeStepKind.PROVE if sender.local and receiver.local:
                button = self.tr("Prove it by handshakes …")
                return Upcoming(step.missing, button, lambda: self._prove(sender, receiver))
            case ExchangeStepKind.PROVE:
                meeting = self.remote_proof_of(direction)
                return Upcoming(step.missing, meeting, lambda: self.prove_remotely(direction), waits=not meeting)
            case _:
                button = self.tr("Go to the requests")
                return Upcoming(step.missing, button, lambda: self._show_requests(request), waits=not sender.local)

    def _trust_step(self, step: ExchangeStep, sender: State, receiver: State) -> Upcoming:
        """The receiver types the fingerprint; a remote State is sent a bundle."""
        root = self._certificate(step)
        if not receiver.local:
            button = self.tr("Create the bundle of {state} …").format(state=sender.name)
            return Upcoming(step.missing, button, self._show_trust, waits=not sender.local)
        if root is None:
            button = self.tr("Import root or bundle of {state} …").format(state=sender.name)
            return Upcoming(step.missing, button, self._show_trust, waits=True)
        button = self.tr("Trust the root of {state} …").format(state=sender.name)
        return Upcoming(step.missing, button, lambda: self._trust(root, receiver))

    def _server_step(self, step: ExchangeStep, server: State) -> Upcoming:
        """A State certifies its own server by the same two steps as another one's client."""
        asked = proposed_server_request(self._snapshot, server)
        if asked is None:
            button = self.tr("Create key and CSR of its server …")
            return Upcoming(step.missing, button, lambda: self._forms.make_server_request(server))
        button = self.tr("Approve the request of its server …")
        return Upcoming(step.missing, button, lambda: self._forms.approve(asked))

    def _create_root(self, state: State) -> None:
        names = [each.name for each in self._snapshot.states if each.local]
        self._tab_work.services.open_action(
            "certificates.create-root", {"state": state.name}, {"state": one_name_of(names)}
        )

    def _prove(self, client: State, server: State) -> None:
        self._tab_work.services.open_action(
            "certificates.prove",
            {"state_a": client.name, "state_b": server.name},
            {"state_a": fixed(client.name, client.name), "state_b": fixed(server.name, server.name)},
        )

    def _request(self, step: ExchangeStep) -> RequestRecord | None:
        if step.kind not in (ExchangeStepKind.GIVE_REQUEST, ExchangeStepKind.APPROVE):
            return None
        return next((request for request in self._snapshot.requests if request.id == step.subject), None)

    def _trust(self, root: CertificateRecord, truster: State) -> None:
        dialog = TrustDialog(self._tab_work, self._snapshot, [root], self._page, truster.name)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def _certificate(self, step: ExchangeStep) -> CertificateRecord | None:
        return None if step.subject is None else self._snapshot.certificate_by_id.get(step.subject)

    def _show_trust(self) -> None:
        self._tab_work.services.show_tab("trust")

    def _show_requests(self, request: RequestRecord | None) -> None:
        tab = self._tab_work.services.show_tab(RequestsView.key)
        if request is not None and isinstance(tab, RequestsView):
            tab.show_request(request.id)
