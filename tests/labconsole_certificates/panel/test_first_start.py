"""The first start: a State with its CA by clicks; files that are dropped, inspected, and imported."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QLabel
from pytestqt.qtbot import QtBot

from labconsole.engine.operation_process import Outcome
from labconsole.paths import pki_dir
from labconsole.security.secrets import Secret
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.csrs import create_csr
from labconsole.security.x509.key_types import KeyType, generate
from labconsole_certificates.operations.export import pkcs12_bytes
from labconsole_certificates.operations.export_formats import as_pem
from labconsole_certificates.panel.audit_view import AuditView
from labconsole_certificates.panel.certificates.certificates_view import CertificatesView
from labconsole_certificates.panel.certificates.file_pane import StateQuestion
from labconsole_certificates.panel.page import CertificatesPage
from labconsole_certificates.panel.requests.import_request_dialog import NewRequestDialog
from labconsole_certificates.revocation.crl_operations import publish_crl, revoke
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.widgets.secret_dialog import SecretDialog
from tests.helpers.authorities import named, new_authority
from tests.labconsole_certificates.panel.conftest import Pair
from tests.labconsole_certificates.panel.page_driver import TIMEOUT_MS, Lab, certified

PASSWORD = "a password of the file"


def opened(qtbot: QtBot, window: MainWindow) -> Lab:
    page = window.plugin_pages.open("page:certificates:certificates")
    assert isinstance(page, CertificatesPage)
    page.building.finish()
    return Lab(qtbot, window, page)


def test_first_start_leads_to_a_state_with_its_own_ca(qtbot: QtBot, window: MainWindow) -> None:
    lab = opened(qtbot, window)
    view = lab.tab("certificates", CertificatesView)
    lab.until(lambda: view.first_start.isVisible())
    assert not pki_dir().joinpath("pki.db").exists()
    lab.click(view.first_start.create_button)
    assert not lab.dialog(OperationDialog).start_button.isEnabled()
    lab.add_state("State A", "a.example")
    sentence = lab.do_action()
    assert "State A Root CA" in sentence
    assert [(state.name, state.domain, state.local) for state in lab.snapshot().states] == [
        ("State A", "a.example", True)
    ]
    assert lab.operations() == ["certificates.add-state", "certificates.create-root"]
    lab.until(lambda: view.tree.tree.shown == 1)
    assert not view.first_start.isVisible()
    [record] = lab.snapshot().certificates
    assert record.profile is CertificateProfile.ROOT
    assert record.key is not None
    audit = lab.tab("audit", AuditView)
    lab.until(lambda: audit.model.rowCount() > 0)
    lab.qtbot.keyClicks(audit.search, record.sha256[:16])
    fingerprints = {entry.fingerprint for entry in audit.model.records()}
    assert fingerprints == {record.sha256}


def test_dialog_for_a_new_ca_says_what_each_kind_of_key_is_good_for(pair: Pair, lab: Lab) -> None:
    view = lab.tab("certificates", CertificatesView)
    lab.until(lambda: view.tree.tree.shown == 2)
    view.forms.create_state()
    lab.add_state("State D")
    form = lab.dialog(OperationDialog)
    offered = [box.itemText(row) for box in form.findChildren(QComboBox) for row in range(box.count())]
    good = {kind: said for kind, _, said in (text.partition(": ") for text in offered) if said}
    assert good["RSA-3072"] == "Tests 1 to 4" and good["ECDSA P-256"] == "Tests 1 and 2"
    assert "For the AMQP Tests 3 and 4 choose RSA" in " ".join(label.text() for label in form.findChildren(QLabel))
    form.reject()


def test_a_state_whose_name_is_taken_is_refused_and_can_be_renamed(pair: Pair, lab: Lab) -> None:
    view = lab.tab("certificates", CertificatesView)
    lab.until(lambda: view.tree.tree.shown == 2)
    view.forms.create_state()
    dialog = lab.dialog(OperationDialog)
    lab.qtbot.keyClicks(dialog.form.row("state").editor.focusProxy(), "State A")
    with lab.qtbot.waitSignal(dialog.ended, timeout=TIMEOUT_MS) as ended:
        lab.click(dialog.start_button)
    [end] = ended.args
    assert end.outcome is Outcome.FAILED and "State A" in end.sentence
    assert len(lab.snapshot().states) == 2
    lab.click(dialog.again_button)
    dialog.form.row("state").set_value("")
    lab.add_state("State A2")
    lab.do_action()
    assert "State A2" in [state.name for state in lab.snapshot().states]
    lab.until(lambda: view.tree.tree.shown == 3)


def test_dropped_certificate_is_inspected_and_imported_only_on_request(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    file = tmp_path / "root.pem"
    file.write_bytes(as_pem(new_authority("Stranger Root CA").certificate))
    lab = opened(qtbot, window)
    lab.drop(window, file)
    view = lab.tab("certificates", CertificatesView)
    lab.until(lambda: view.file_pane.open)
    assert "only shown" in view.detail.hint.text()
    assert "It is new here" in view.detail.hint.text()
    assert "Stranger Root CA" in view.detail.view.toPlainText()
    assert not pki_dir().joinpath("pki.db").exists()
    lab.click(view.detail.take_in_button)
    question = lab.dialog(StateQuestion)
    qtbot.keyClicks(question.box, "Stranger")
    lab.click(question.take_in_button)
    lab.until(lambda: view.tree.tree.shown == 1)
    snapshot = lab.snapshot()
    [state] = snapshot.states
    assert (state.name, state.local) == ("Stranger", False)
    assert snapshot.certificates[0].key is None
    assert not snapshot.trust
    assert lab.operations() == ["certificates.take"]
    lab.until(lambda: [found.record for found in view.tree.selected_nodes()] != [])


def test_dropped_pkcs12_asks_for_its_password_and_a_wrong_one_is_said_so(pair: Pair, lab: Lab, tmp_path: Path) -> None:
    leaf = certified(pair.store, pair.b, pair.a, CertificateProfile.TLS_CLIENT)
    file = tmp_path / "client.p12"
    file.write_bytes(pkcs12_bytes(pair.store, leaf, Secret(PASSWORD)))
    view = lab.tab("certificates", CertificatesView)
    for typed in ("wrong", PASSWORD):
        lab.drop(lab.window, file)
        dialog = lab.dialog(SecretDialog)
        [edit] = dialog.edits.values()
        lab.qtbot.keyClicks(edit, typed)
        lab.click(dialog.continue_button)
        if typed == "wrong":
            lab.until(lambda: any("client.p12" in entry.message.sentence for entry in lab.window.messages.entries()))
            assert not view.file_pane.open
        lab.until(lambda: not dialog_left(lab))
    lab.until(lambda: view.file_pane.open)
    lab.until(lambda: "It is in the database already" in view.detail.hint.text())
    lab.click(view.detail.close_button)
    lab.until(lambda: not view.file_pane.open)


def dialog_left(lab: Lab) -> bool:
    return bool([each for each in lab.window.findChildren(SecretDialog) if each.isVisible()])


def test_dropped_csr_is_shown_before_import_and_an_unknown_file_is_refused(
    pair: Pair, lab: Lab, tmp_path: Path
) -> None:
    rubbish = tmp_path / "rubbish.pem"
    rubbish.write_text("no certificate at all")
    lab.drop(lab.window, rubbish)
    lab.until(lambda: any("rubbish.pem" in entry.message.sentence for entry in lab.window.messages.entries()))
    assert lab.page.tabs.currentWidget().objectName() == "certificates"
    request = tmp_path / "request.csr"
    csr = create_csr(generate(KeyType.P_256), named("CN=elsewhere"), [], CertificateProfile.TLS_CLIENT)
    request.write_bytes(as_pem(csr))
    lab.drop(lab.window, request)
    view = lab.tab("certificates", CertificatesView)
    lab.until(lambda: view.file_pane.open)
    assert "CN" in view.detail.view.toPlainText()
    assert not lab.snapshot().requests
    lab.click(view.detail.take_in_button)
    lab.until(lambda: lab.page.tabs.currentWidget().objectName() == "requests")
    lab.dialog(NewRequestDialog).reject()
    assert not lab.snapshot().requests


def test_pasted_text_is_inspected(pair: Pair, lab: Lab) -> None:
    view = lab.tab("certificates", CertificatesView)
    lab.until(lambda: view.tree.tree.shown == 2)
    QGuiApplication.clipboard().setText(as_pem(pair.root_a.certificate).decode())
    view.tree.setFocus()
    lab.qtbot.keyClick(view.tree, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    lab.until(lambda: view.file_pane.open)
    assert "The pasted text" in view.detail.hint.text()


def test_files_dropped_together_are_shown_in_turn_and_a_crl_is_imported(pair: Pair, lab: Lab, tmp_path: Path) -> None:
    leaf = certified(pair.store, pair.b, pair.a, CertificateProfile.TLS_CLIENT)
    revoke(pair.store, leaf, x509.ReasonFlags.key_compromise)
    crl = publish_crl(pair.store, pair.root_a)
    files = [tmp_path / "leaf.pem", tmp_path / "state-a.crl"]
    files[0].write_bytes(as_pem(leaf.certificate))
    files[1].write_bytes(as_pem(crl.crl))
    lab.page.open_files(files)
    view = lab.tab("certificates", CertificatesView)
    lab.until(lambda: "1 of 2" in view.detail.hint.text())
    lab.click(view.detail.after_button)
    lab.until(lambda: "2 of 2" in view.detail.hint.text())
    serial = view.detail.view.toPlainText()
    assert "State A Root CA" in serial
    assert "key compromise" in serial.lower()
    lab.click(view.detail.take_in_button)
    lab.until(lambda: not view.file_pane.open)
    assert len(lab.snapshot().crls) == 1


def test_a_ca_from_a_file_is_imported_for_a_new_state_where_there_is_none(qtbot: QtBot, window: MainWindow) -> None:
    lab = opened(qtbot, window)
    view = lab.tab("certificates", CertificatesView)
    lab.until(lambda: view.first_start.isVisible())
    for import_file in (view.forms.import_authority, lambda: view.forms.import_pkcs12(None)):
        before = len(lab.snapshot().states)
        import_file()
        if not before:
            lab.add_state("State A")
        form = lab.dialog(OperationDialog)
        assert form.form.values()["state"] == "State A"
        form.reject()
        lab.until(view.forms.root.isEnabled)
