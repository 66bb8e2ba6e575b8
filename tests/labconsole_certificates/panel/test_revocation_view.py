"""The revocation tab by clicks: revoked with a reason, published, exported, and reported by the OCSP responder."""

from __future__ import annotations

import socket

from cryptography import x509
from PySide6.QtGui import QGuiApplication

from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole_certificates.operations.export import exported
from labconsole_certificates.panel.revocation.revocation_view import RevocationView, RevokeDialog
from labconsole_certificates.revocation.crl_operations import publish_crl
from labconsole_ui.widgets.message_bar import MessageBar
from tests.labconsole_certificates.panel.conftest import Pair
from tests.labconsole_certificates.panel.page_driver import Lab, certified


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
    bar = lab.window.findChild(MessageBar)
    lab.click(view.ask_button)
    lab.until(lambda: any("is not revoked" in each.message.sentence for each in bar.entries()))

    lab.click(view.revoke_button)
    dialog = lab.dialog(RevokeDialog)
    dialog.reason_box.setCurrentText("key compromise")
    assert not dialog.revoke_button.isEnabled()
    dialog.confirmation.edit.setText(view.issued.record(0).name)
    lab.click(dialog.revoke_button)
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


def test_a_crl_of_an_unknown_issuer_is_refused_and_one_of_a_known_ca_imported(pair: Pair, lab: Lab) -> None:
    crl = publish_crl(pair.store, pair.root_a)
    pem = exported(pair.store.snapshot(), crl)
    view = lab.tab("revocation", RevocationView)
    view.drop_box.pasted.emit(b"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n")
    bar = lab.window.findChild(MessageBar)
    lab.until(lambda: len(bar.entries()) == 1)
    QGuiApplication.clipboard().setText(pem.decode())
    lab.click(view.drop_box.paste_button)
    lab.until(lambda: len(bar.entries()) == 2)
    assert len(lab.snapshot().crls) == 1
