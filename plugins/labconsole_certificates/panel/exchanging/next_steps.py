"""The next step of an exchange: what it is, and the button that does it or leads to where it is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QWidget

from labconsole.security.pki.records import CertificateRecord, RequestRecord, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole_certificates.exchange.steps import Direction, Exchange, Step, StepKind
from labconsole_certificates.operations import requests
from labconsole_certificates.operations.exporting import Form, exported
from labconsole_certificates.panel.desk import Desk
from labconsole_certificates.panel.editors import one_name_of
from labconsole_certificates.panel.requests.making import RequestForms
from labconsole_certificates.panel.requests.view import RequestsView
from labconsole_certificates.panel.trusting.trust_dialog import TrustDialog


@dataclass(frozen=True)
class Upcoming:
    """What comes next: a sentence, and what the button says and does. `complete`: both ways are proven."""

    sentence: str
    button: str
    do: Callable[[], object]
    complete: bool = False


class NextSteps(QObject):
    """Knows for each kind of step what this console can do about it."""

    def __init__(self, desk: Desk, page: QWidget) -> None:
        super().__init__(page)
        self._desk = desk
        self._page = page
        self._snapshot = Snapshot()
        self._forms = RequestForms(desk.services, self)

    def refresh(self, snapshot: Snapshot) -> None:
        """Go by this from now on."""
        self._snapshot = snapshot
        self._forms.refresh(snapshot)

    def next_of(self, exchange: Exchange) -> Upcoming:
        """The next step of either direction: the first that this console can do, else the first that it waits for."""
        pending = [
            (direction, direction.next) for direction in (exchange.there, exchange.back) if direction.next is not None
        ]
        if not pending:
            return self._prove(
                exchange.there.client, exchange.there.server, self.tr("Both ways are proven."), complete=True
            )
        ready = next((entry for entry in pending if self._can_do(entry[1])), pending[0])
        return self._upcoming(*ready)

    def names_of(self, exchange: Exchange) -> str:
        """By which names AMQP trials take what came of it."""
        states = {
            exchange.there.client.id: exchange.there.client.name,
            exchange.back.client.id: exchange.back.client.name,
        }
        found = [entry for entry in self._snapshot.identities if entry.state in states]
        if not found:
            return self.tr("As soon as a certificate is here with its key, AMQP trials can use it by a name.")
        listed = ", ".join(f"{entry.name} ({states[entry.state]})" for entry in found)
        return self.tr("AMQP trials use these identities by name: {names}.").format(names=listed)

    def _can_do(self, step: Step) -> bool:
        """Whether this console holds what the step needs; else another console has to move."""
        states = self._snapshot.state_by_id
        sender, receiver = states[step.sender], states[step.receiver]
        if step.kind is StepKind.TRUST_ROOT:
            return receiver.local and step.subject is not None
        return sender.local

    def _upcoming(self, direction: Direction, step: Step) -> Upcoming:
        states = self._snapshot.state_by_id
        sender, receiver = states[step.sender], states[step.receiver]
        if not self._can_do(step):
            return self._await(step, sender)
        request = self._request(step)
        match step.kind:
            case StepKind.MAKE_ROOT:
                return Upcoming(
                    step.missing,
                    self.tr("Create the CA of {state} …").format(state=sender.name),
                    lambda: self._desk.services.open_action(
                        "certificates.create-root",
                        {"state": sender.name},
                        {"state": one_name_of([state.name for state in self._snapshot.states if state.local])},
                    ),
                )
            case StepKind.TRUST_ROOT:
                return Upcoming(
                    step.missing,
                    self.tr("Trust the root of {state} …").format(state=sender.name),
                    lambda: self._trust(step, receiver),
                )
            case StepKind.MAKE_REQUEST:
                return Upcoming(
                    step.missing,
                    self.tr("Make key and CSR of {state} …").format(state=sender.name),
                    lambda: self._forms.make_request(direction.client.name, direction.server.name),
                )
            case StepKind.GIVE_REQUEST if request is not None and receiver.local:
                return Upcoming(
                    step.missing,
                    self.tr("Give the CSR to {state}").format(state=receiver.name),
                    lambda: self._give_request(request, sender, receiver),
                )
            case StepKind.APPROVE if request is not None:
                return Upcoming(
                    step.missing,
                    self.tr("Look, and decide …"),
                    lambda: self._forms.approve(request),
                )
            case StepKind.GIVE_CERTIFICATE if receiver.local:
                return Upcoming(
                    step.missing,
                    self.tr("Give the certificate to {state}").format(state=receiver.name),
                    lambda: self._give_certificate(step, sender, receiver),
                )
            case StepKind.PROVE:
                return self._prove(direction.client, direction.server, step.missing)
            case _:
                return Upcoming(step.missing, self.tr("Go to the requests"), lambda: self._show_requests(request))

    def _await(self, step: Step, sender: State) -> Upcoming:
        """Another console has to send something: where it is taken in."""
        if step.kind is StepKind.TRUST_ROOT:
            return Upcoming(
                step.missing,
                self.tr("Take in the root or bundle of {state} …").format(state=sender.name),
                lambda: self._desk.services.show_tab("trust"),
            )
        return Upcoming(step.missing, self.tr("Go to the requests"), lambda: self._show_requests(self._request(step)))

    def _prove(self, client: State, server: State, sentence: str, *, complete: bool = False) -> Upcoming:
        return Upcoming(
            sentence,
            self.tr("Prove it again …") if complete else self.tr("Prove it by handshakes …"),
            lambda: self._desk.services.open_action(
                "certificates.prove", {"state_a": client.name, "state_b": server.name}, None
            ),
            complete,
        )

    def _request(self, step: Step) -> RequestRecord | None:
        if step.kind not in (StepKind.GIVE_REQUEST, StepKind.APPROVE):
            return None
        return next((request for request in self._snapshot.requests if request.id == step.subject), None)

    def _trust(self, step: Step, truster: State) -> None:
        root = self._certificate(step)
        if root is None:
            return
        dialog = TrustDialog(self._desk, self._snapshot, [root], self._page, truster.name)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def _certificate(self, step: Step) -> CertificateRecord | None:
        return None if step.subject is None else self._snapshot.certificate_by_id.get(step.subject)

    def _give_request(self, request: RequestRecord, sender: State, receiver: State) -> None:
        self._desk.do(
            lambda store: requests.take_in_request(store, sender, receiver, request.der, request.profile),
            lambda _taken: None,
        )

    def _give_certificate(self, step: Step, sender: State, receiver: State) -> None:
        record = self._certificate(step)
        if record is not None:
            data = exported(self._snapshot, record, Form.CHAIN)
            self._desk.do(lambda store: requests.take_in_certificate(store, data, sender), lambda _taken: None)

    def _show_requests(self, request: RequestRecord | None) -> None:
        tab = self._desk.services.show_tab(RequestsView.key)
        if request is not None and isinstance(tab, RequestsView):
            tab.show_request(request.id)
