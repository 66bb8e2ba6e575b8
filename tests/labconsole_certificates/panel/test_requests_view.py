"""The requests tab by clicks: a CSR of another console in, its certificate out; refusing; what is refused itself."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from PySide6.QtGui import QGuiApplication

from labconsole.security.pki.records import Item, RequestStatus
from labconsole.security.secrets import Secret
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.csrs import create_csr
from labconsole.security.x509.fingerprints import fingerprint, grouped
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.names import general_name_from_text, name_from_text
from labconsole.security.x509.parsing import read_pkcs12
from labconsole_certificates.operations import no_csr, own_csrs, received_csrs, self_signed
from labconsole_certificates.operations.export import Form, exported
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.states import add_state
from labconsole_certificates.panel.requests.import_request_dialog import NewRequestDialog
from labconsole_certificates.panel.requests.methods_dialog import MethodsDialog
from labconsole_certificates.panel.requests.requests_view import RequestsView
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.widgets.secret_dialog import SecretDialog
from tests.helpers.openssl_command import run_openssl
from tests.labconsole_certificates.panel.conftest import Pair
from tests.labconsole_certificates.panel.page_driver import Lab

SUBJECT = r"CN=บวท.,O=\<b\>AEROTHAI\</b\>,C=TH"


def csr_from_elsewhere() -> x509.CertificateSigningRequest:
    """A CSR that another console made, with names in other scripts and what looks like markup."""
    names = [general_name_from_text("bücher.example")]
    return create_csr(generate(KeyType.P_256), name_from_text(SUBJECT), names, CertificateProfile.TLS_CLIENT)


def test_a_dropped_csr_is_seen_approved_and_its_certificate_goes_back(pair: Pair, lab: Lab, tmp_path: Path) -> None:
    csr = csr_from_elsewhere()
    file = tmp_path / "thailand.csr"
    file.write_bytes(csr.public_bytes(Encoding.PEM))
    add_state(pair.store, "Indonesia", local=False)
    view = lab.tab("requests", RequestsView)
    lab.drop(view.drop_box, file)

    dialog = lab.dialog(NewRequestDialog)
    assert "proves that the sender has the private key" in dialog.verdict.text()
    assert not lab.snapshot().requests
    assert not dialog.take_button.isEnabled()  # its State is not chosen yet
    dialog.requester_box.setEditText("Thailand")
    dialog.issuer_box.setCurrentText("State A")
    lab.click(dialog.take_button)

    lab.until(lambda: view.pane.details is not None)
    assert lab.operations() == ["certificates.take-csr"]
    (thailand,) = [state for state in lab.snapshot().states if state.name == "Thailand"]
    assert not thailand.local  # its State was not known yet
    seen = view.pane.description.toPlainText()
    for text in ("บวท.", "<b>AEROTHAI</b>", "bücher.example", "ECDSA", grouped(fingerprint(csr))[:19]):
        assert text in seen
    lab.click(view.pane.approve_button)
    form = lab.dialog(OperationDialog).form
    form.set_values({**form.values(), "valid_days": 30})
    lab.do_action()
    lab.until(lambda: view.pane.export_bar.copy_button.isVisible())
    lab.click(view.pane.export_bar.copy_button)

    pem = QGuiApplication.clipboard().text().encode()
    issued, root = x509.load_pem_x509_certificates(pem)
    assert issued.public_key() == csr.public_key()
    assert (issued.not_valid_after_utc - issued.not_valid_before_utc).days == 30
    assert root == pair.root_a.certificate
    (tmp_path / "root.pem").write_bytes(root.public_bytes(Encoding.PEM))
    (tmp_path / "issued.pem").write_bytes(issued.public_bytes(Encoding.PEM))
    assert "OK" in run_openssl("verify", "-CAfile", tmp_path / "root.pem", tmp_path / "issued.pem")
    lab.until(lambda: Item.CERTIFICATE in [handover.item for handover in lab.snapshot().handovers])
    dragged = view.pane.export_bar.mime_data()
    assert Path(dragged.urls()[0].toLocalFile()).read_bytes() == pem


def test_a_request_is_refused_with_its_reason_and_not_without(pair: Pair, lab: Lab) -> None:
    made = own_csrs.make_request(
        pair.store, pair.a, pair.b, NewKey(), CertificateProfile.TLS_CLIENT, subject="CN=host.of.others"
    )
    view = lab.tab("requests", RequestsView)
    lab.until(lambda: view.pane.receive_button.text() == "&Give to State B")
    lab.click(view.pane.receive_button)
    lab.click(view.pane.refuse_button)
    dialog = lab.dialog(OperationDialog)
    assert not dialog.start_button.isEnabled()
    dialog.form.set_values({**dialog.form.values(), "reason": "not your host"})
    assert lab.do_action() == f"Request {made.id} was refused."
    lab.until(lambda: view.pane.verdict.text() == "Refused: not your host")
    (request,) = lab.snapshot().requests
    assert (request.sha256, request.status, request.reason) == (made.sha256, RequestStatus.REFUSED, "not your host")
    assert not view.pane.approve_button.isVisible()
    assert lab.operations()[-2:] == ["certificates.take-csr", "certificates.refuse"]


def test_a_csr_with_a_bad_signature_is_shown_but_not_imported(pair: Pair, lab: Lab) -> None:
    view = lab.tab("requests", RequestsView)
    der = bytearray(csr_from_elsewhere().public_bytes(Encoding.DER))
    der[-1] ^= 1
    view.drop_box.pasted.emit(bytes(der))
    dialog = lab.dialog(NewRequestDialog)
    dialog.requester_box.setEditText("Thailand")
    assert dialog.verdict.property("tone") == "bad"
    assert not dialog.take_button.isEnabled()
    dialog.reject()
    assert not lab.snapshot().requests


def test_a_pasted_certificate_of_an_own_request_is_imported(pair: Pair, lab: Lab) -> None:
    made = own_csrs.make_request(pair.store, pair.a, pair.b, NewKey(), CertificateProfile.TLS_CLIENT)
    taken = received_csrs.import_request(pair.store, pair.a, pair.b, made.der)
    record = received_csrs.approve(pair.store, taken)
    view = lab.tab("requests", RequestsView)
    view.drop_box.pasted.emit(exported(pair.store.snapshot(), record, Form.CHAIN))
    lab.until(lambda: Item.CERTIFICATE in [handover.item for handover in lab.snapshot().handovers])
    bar = lab.window.messages
    lab.until(lambda: any("belongs to a key of this console" in each.message.sentence for each in bar.entries()))
    assert lab.operations() == ["certificates.take-certificate"]


def test_pasted_text_without_a_certificate_is_refused(pair: Pair, lab: Lab) -> None:
    view = lab.tab("requests", RequestsView)
    QGuiApplication.clipboard().setText("good morning")
    lab.click(view.drop_box.paste_button)
    bar = lab.window.messages
    lab.until(lambda: any("neither a CSR nor a certificate" in each.message.sentence for each in bar.entries()))


def test_the_methods_without_csr_say_what_the_source_warns_of(pair: Pair, lab: Lab) -> None:
    view = lab.tab("requests", RequestsView)
    lab.click(view.new_button)
    dialog = lab.dialog(MethodsDialog)
    texts = dialog.texts()
    assert no_csr.WARNING in texts
    assert self_signed.WARNING in texts
    lab.click(dialog.buttons["self-signed"])
    lab.do_action()
    (record,) = [each for each in lab.snapshot().certificates if each.id not in (pair.root_a.id, pair.root_b.id)]
    assert record.self_signed


def test_without_a_csr_one_password_protected_file_goes_to_the_client(pair: Pair, lab: Lab, tmp_path: Path) -> None:
    view = lab.tab("requests", RequestsView)
    lab.click(view.new_button)
    lab.click(lab.dialog(MethodsDialog).buttons["no-csr"])
    dialog = lab.dialog(OperationDialog)
    file = tmp_path / "client.p12"
    dialog.form.set_values({**dialog.form.values(), "file": str(file)})
    ends = []
    dialog.ended.connect(ends.append)
    lab.click(dialog.start_button)
    asked = lab.dialog(SecretDialog)
    for edit in asked.edits.values():
        lab.qtbot.keyClicks(edit, "correct horse battery staple")
    lab.click(asked.continue_button)
    lab.until(lambda: bool(ends))
    dialog.close()
    held = read_pkcs12(file.read_bytes(), Secret("correct horse battery staple"))
    assert held.key is not None and held.certificate is not None
    assert held.certificate.public_key() == held.key.public_key()
    assert file.stat().st_mode & 0o777 == 0o600
    certificate = lab.snapshot().certificate_by_sha256[fingerprint(held.certificate)]
    assert certificate.key is None  # the issuer keeps no copy of the private key
