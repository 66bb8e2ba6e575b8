"""The revocation tab by clicks: revoked with a reason, published, exported, and reported by the OCSP responder."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from cryptography import x509
from PySide6.QtGui import QGuiApplication

from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole_certificates.operations.certificate_import import import_certificates
from labconsole_certificates.operations.export import exported
from labconsole_certificates.panel.revocation.revocation_view import RevocationView
from labconsole_certificates.revocation.crl_operations import publish_crl
from labconsole_ui.operations.operation_dialog import OperationDialog
from tests.labconsole_certificates.panel.conftest import Pair
from tests.labconsole_certificates.panel.page_driver import Lab, certified, local_state


def free_port() -> int:
    """A port of loopback without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_revoked_certificate_is_on_the_crl_and_answered_by_ocsp(pair: Pair, lab: Lab) -> None:
    record = certified(pair.store, pair.a, pair.b, CertificateProfile.TLS_CLIENT)
    view = lab.tab("revocation", RevocationView)
    lab.until(lambda: view.issued.rowCount() == 1 and view.responder.authority_box.count() == 2)
    view.issued_table.selectRow(0)
    view.responder.authority_box.setCurrentIndex(view.responder.authority_box.findData(pair.root_b.sha256))
    view.responder.port_box.setValue(free_port())
    lab.click(view.responder.start_button)
    bar = lab.window.messages
    lab.click(view.ask_button)
    lab.until(lambda: any("is not revoked" in each.message.sentence for each in bar.entries()))

    lab.click(view.revoke_button)
    dialog = lab.dialog(OperationDialog)
    dialog.form.set_values({**dialog.form.values(), "reason": "keyCompromise"})
    lab.until(lambda: dialog.confirmation.edit.isVisible())
    assert not dialog.start_button.isEnabled()
    dialog.confirmation.edit.setText(view.issued.record(0).name)
    lab.do_action()
    lab.until(lambda: view.issued.record(0).record.revoked is not None)
    lab.click(view.ask_button)
    lab.until(lambda: any("was revoked on" in each.message.sentence for each in bar.entries()))
    assert view.responder.stop_button.text().replace("&", "") == "Stop"
    lab.click(view.responder.stop_button)
    lab.until(lambda: not view.responder.running)

    names = [row.owner for row in view.crls.records()]
    view.crl_table.selectRow(names.index("State B"))
    lab.click(view.publish_button)
    lab.do_action()
    lab.until(lambda: view.export_bar.copy_button.isVisible())
    lab.click(view.export_bar.copy_button)
    crl = x509.load_pem_x509_crl(QGuiApplication.clipboard().text().encode())
    (entry,) = crl
    assert entry.serial_number == record.certificate.serial_number
    assert entry.extensions.get_extension_for_class(x509.CRLReason).value.reason is x509.ReasonFlags.key_compromise
    done = ["certificates.revoke", "certificates.publish-crl", "certificates.note-export"]
    lab.until(lambda: lab.operations() == done)
    revoked, *_later = [each.detail for each in reversed(lab.snapshot().audit) if each.what == "operation"]
    assert json.loads(revoked) == {"certificate": record.sha256, "reason": "keyCompromise"}


def test_a_message_offers_the_next_crl_after_each_revocation(pair: Pair, lab: Lab) -> None:
    record = certified(pair.store, pair.a, pair.b, CertificateProfile.TLS_CLIENT)
    view = lab.tab("revocation", RevocationView)
    lab.until(lambda: view.issued.rowCount() == 1)
    view.choose(record.id)
    lab.click(view.revoke_button)
    dialog = lab.dialog(OperationDialog)
    loss = f"{view.issued.record(0).name} of State A is no longer accepted as soon as peers have the next CRL."
    lab.until(lambda: loss in dialog.confirmation.loss.text())
    lab.qtbot.keyClicks(dialog.confirmation.edit, view.issued.record(0).name)
    lab.do_action()
    (entry,) = lab.window.messages.entries()
    assert entry.message.sentence == "It is revoked (unspecified). Peers hear of it with the next CRL."
    assert entry.message.remedy[0] == "Publish CRL …"


def test_a_crl_of_an_unknown_issuer_is_refused_and_one_of_a_known_ca_imported(
    pair: Pair, lab: Lab, tmp_path: Path
) -> None:
    crl = publish_crl(pair.store, pair.root_a)
    pem = exported(pair.store.snapshot(), crl)
    view = lab.tab("revocation", RevocationView)
    view.drop_box.pasted.emit(b"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n")
    bar = lab.window.messages
    lab.until(lambda: len(bar.entries()) == 1)
    QGuiApplication.clipboard().setText(pem.decode())
    lab.click(view.drop_box.paste_button)
    lab.until(lambda: len(bar.entries()) == 2)
    assert len(lab.snapshot().crls) == 1

    with PkiStore.open(tmp_path / "elsewhere") as store:
        _state, root = local_state(store, "State C", "c.example")
        of_c, crl_of_c = exported(store.snapshot(), root), exported(store.snapshot(), publish_crl(store, root))
    view.drop_box.pasted.emit(of_c)
    lab.until(lambda: bar.entries()[0].message.sentence.startswith("The file holds a certificate"))
    assert root.sha256 not in lab.snapshot().certificate_by_sha256, "certificates are imported by other tabs"
    view.drop_box.pasted.emit(crl_of_c)
    lab.until(lambda: "is not known: import its certificate first" in bar.entries()[0].message.sentence)
    import_certificates(pair.store, of_c)
    view.drop_box.pasted.emit(crl_of_c)
    lab.until(lambda: len(lab.snapshot().crls) == 2)
    assert lab.operations() == ["certificates.take"]
