"""The exchange assistant by clicks: step after step, until both ways are proven by real handshakes."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QObject
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from labconsole.security.pki.identities import names
from labconsole.security.secrets import Secret, SecretSource
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.fingerprints import grouped
from labconsole_certificates.demo.exchange_demo import DemoParameters
from labconsole_certificates.exchange.progress import exchange_of
from labconsole_certificates.operations.authorities import create_root
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.states import add_state
from labconsole_certificates.panel.exchange.demo_dialog import DemoDialog
from labconsole_certificates.panel.exchange.exchange_view import ExchangeView
from labconsole_certificates.panel.page import CertificatesPage
from labconsole_certificates.panel.requests.requests_view import RequestsView
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.shell.main_window import MainWindow
from tests.labconsole_certificates.panel.conftest import Pair
from tests.labconsole_certificates.panel.page_driver import Lab, certified, trust


def test_button_does_missing_steps_until_both_directions_are_proven(pair: Pair, lab: Lab) -> None:
    """A trusts B's root, gets its client certificate from B's CA; the way back was gone before."""
    certified(pair.store, pair.b, pair.b, CertificateProfile.TLS_SERVER)
    certified(pair.store, pair.a, pair.a, CertificateProfile.TLS_SERVER)
    trust(pair.store, pair.b, pair.root_a)
    certified(pair.store, pair.b, pair.a, CertificateProfile.TLS_CLIENT)
    view = lab.tab("exchange", ExchangeView)

    lab.until(lambda: view.next_button.text() == "Confirm: State A trusts State B")
    assert view.fingerprint.text().split() == grouped(pair.root_b.sha256).split()
    lab.click(view.next_button)
    lab.until(lambda: view.next_button.text() == "Create the CSR of State A")
    assert not view.fingerprint.isVisible()
    [row] = [each for each in lab.snapshot().trust if each.state == pair.a.id]
    assert row.confirmed == "fingerprint confirmed at the console that has both States"

    lab.click(view.details_button)  # with other values: the dialog
    lab.do_action()
    lab.until(lambda: view.next_button.text() == "Give the CSR to State B")
    lab.click(view.next_button)
    lab.until(lambda: view.next_button.text() == "Approve it, and give it back")
    assert "State A asks State B to certify" in view.sentence.text()
    lab.click(view.details_button)  # all that is in it
    requests = lab.page.tabs.currentWidget().findChild(RequestsView)
    lab.until(lambda: requests.pane.details is not None and "to the CA of State B" in requests.pane.title.text())
    lab.click(requests.pane.approve_button)
    lab.do_action()

    view = lab.tab("exchange", ExchangeView)
    lab.until(lambda: view.next_button.text() == "Give the certificate to State A")
    lab.click(view.next_button)
    lab.until(lambda: view.next_button.text() == "Prove it by handshakes")
    assert "Not proven yet" in view.there.state.text()
    lab.click(view.next_button)

    lab.until(lambda: view.sentence.text() == "Both ways are proven.")
    for card, way in (
        (view.there, "[State A] → tls-connect → [State B]"),
        (view.back, "[State B] → tls-connect → [State A]"),
    ):
        assert card.title.text() == way
        assert "TLSv1.3" in card.state.text()
    assert {(proof.client, proof.server) for proof in lab.snapshot().proofs} == {
        (pair.a.id, pair.b.id),
        (pair.b.id, pair.a.id),
    }

    lab.click(view.name_button)
    naming = lab.dialog(OperationDialog)
    assert not naming.start_button.isEnabled()
    naming.form.set_values({**naming.form.values(), "identity": "swim-a"})
    lab.do_action()
    lab.until(lambda: "swim-a" in view.names.text())
    assert names() == ("swim-a",)
    assert lab.operations() == [
        "certificates.exchange-step",
        "certificates.make-request",
        "certificates.exchange-step",
        "certificates.approve-request",
        "certificates.exchange-step",
        "certificates.exchange-step",
        "certificates.name",
    ]


class Clicks(QObject):
    """Counts the clicks that the operator makes, wherever they go."""

    def __init__(self, application: QCoreApplication) -> None:
        super().__init__()
        self.count = 0
        application.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt names it
        if event.type() is QEvent.Type.MouseButtonPress and isinstance(watched, QWidget):
            self.count += 1
        return False


def test_two_states_from_nothing_to_two_green_handshakes_in_twenty_clicks(qtbot: QtBot, window: MainWindow) -> None:
    """It took 57."""
    application = QCoreApplication.instance()
    assert application is not None
    clicks = Clicks(application)
    page = window.plugin_pages.open("page:certificates:certificates")
    assert isinstance(page, CertificatesPage)
    page.building.finish()
    lab = Lab(qtbot, window, page)
    view = lab.tab("exchange", ExchangeView)
    for name in ("State A", "State B"):
        lab.click(view.found_button)
        lab.add_state(name, f"{name[-1]}.example")
        lab.do_action()
    lab.until(lambda: (view.a_box.currentText(), view.b_box.currentText()) == ("State A", "State B"))
    while view.sentence.text() != "Both ways are proven.":
        before = view.next_button.text()
        lab.click(view.next_button)
        lab.until(lambda before=before: view.next_button.text() != before)
        # The last step proves both ways, and may have been shown when half of it was done.
        lab.until(lambda: not view._executing and view._exchange == exchange_of(lab.snapshot(), "State A", "State B"))
    application.removeEventFilter(clicks)
    assert len(lab.snapshot().proofs) == 2
    assert "TLSv1.3" in view.there.state.text() and "TLSv1.3" in view.back.state.text()
    assert 10 < clicks.count <= 19, clicks.count  # and one for opening the page


def test_button_takes_no_click_while_it_executes_a_step_and_keeps_the_focus(pair: Pair, lab: Lab) -> None:
    view = lab.tab("exchange", ExchangeView)
    view.show_pair("State A", "State B")
    lab.until(lambda: view.next_button.text() == "Confirm: State A trusts State B")
    view.next_button.setFocus()
    lab.click(view.next_button)
    assert not view.next_button.isEnabled()
    lab.until(view.next_button.isEnabled)
    assert view.next_button.hasFocus()
    lab.until(lambda: view.next_button.text() != "Confirm: State A trusts State B")


def test_the_two_states_that_were_made_last_are_shown(pair: Pair, lab: Lab) -> None:
    view = lab.tab("exchange", ExchangeView)
    lab.until(lambda: (view.a_box.currentText(), view.b_box.currentText()) == ("State A", "State B"))
    for name in ("State C", "State D"):
        add_state(pair.store, name)
    lab.page.services.read_again()
    lab.until(lambda: (view.a_box.currentText(), view.b_box.currentText()) == ("State C", "State D"))
    view.show_pair("State A", "State B")
    add_state(pair.store, "State E", local=False)
    add_state(pair.store, "Lab")  # as the first AMQP trial makes it
    lab.page.services.read_again()
    lab.until(lambda: view.a_box.count() == 6)
    assert (view.a_box.currentText(), view.b_box.currentText()) == ("State A", "State B")


def test_step_of_a_key_with_a_typed_passphrase_is_done_by_its_dialog(pair: Pair, lab: Lab) -> None:
    """A passphrase cannot be entered in a click."""
    for state, root in ((pair.a, pair.root_b), (pair.b, pair.root_a)):
        trust(pair.store, state, root)
    phrase = Secret("a passphrase of the operator")
    create_root(pair.store, pair.b, NewKey(passphrase=SecretSource()), prompt=lambda _purpose: phrase)
    certified(pair.store, pair.a, pair.a, CertificateProfile.TLS_SERVER)
    view = lab.tab("exchange", ExchangeView)
    view.show_pair("State A", "State B")
    lab.until(
        lambda: view.next_button.text() == "Confirm: State A trusts State B" or "Certify" in view.next_button.text()
    )
    if "Confirm" in view.next_button.text():
        lab.click(view.next_button)
        lab.until(lambda: "Certify" in view.next_button.text())
    lab.click(view.next_button)
    dialog = lab.dialog(OperationDialog)
    assert dialog.form is not None
    dialog.reject()


def test_exchange_is_played_as_a_demo_and_the_matrix_fills_with_green(pair: Pair, lab: Lab) -> None:
    before = lab.snapshot()
    view = lab.tab("exchange", ExchangeView)
    lab.click(view.demo_button)
    dialog = lab.dialog(DemoDialog)
    dialog.form.set_values({"states": 2})
    assert "2 connections" in dialog.sentence.text()
    lab.click(dialog.start_button)
    done = "2 of 2 connections proven by mutual TLS."
    lab.qtbot.waitUntil(lambda: dialog.sentence.text() == done)
    assert {cell.meaning for cell in dialog.cells.values()} == {"good"}
    assert len(dialog.cells) == 2
    lab.click(dialog.close_button)
    assert lab.snapshot() == before


def test_demo_has_the_defaults_and_limits_of_its_operation(lab: Lab) -> None:
    view = lab.tab("exchange", ExchangeView)
    lab.click(view.demo_button)
    dialog = lab.dialog(DemoDialog)
    assert dialog.form.parameters == DemoParameters()
    most = next(each.le for each in DemoParameters.model_fields["states"].metadata if hasattr(each, "le"))
    dialog.form.set_values({"states": most, "key_type": "ed25519"})
    assert dialog.start_button.isEnabled()
    assert f"{most} States" in dialog.sentence.text()
    dialog.close()


@pytest.mark.usefixtures("operation_processes")
def test_demo_ends_when_its_dialog_is_closed(lab: Lab) -> None:
    view = lab.tab("exchange", ExchangeView)
    lab.click(view.demo_button)
    dialog = lab.dialog(DemoDialog)
    dialog.form.set_values({"states": 40})
    lab.click(dialog.start_button)
    lab.until(lambda: dialog.progress.value() > 0)
    lab.click(dialog.cancel_button)
    lab.until(lambda: "cancelled" in dialog.sentence.text())
    lab.click(dialog.start_button)
    lab.until(lambda: dialog.progress.value() > 0)
    dialog.reject()
