"""The pictures of the certificates page: an exchange between two States, step by step, to the handshakes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TypeVar

from camera import Camera
from PySide6.QtWidgets import QApplication, QWidget

from labconsole.paths import pki_dir
from labconsole.security.pki.records import CertificateRecord, State
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.fingerprints import grouped
from labconsole_certificates.operations import own_csrs, received_csrs
from labconsole_certificates.operations.authorities import create_root
from labconsole_certificates.operations.export import Form, exported
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.states import add_state
from labconsole_certificates.panel.exchange.exchange_view import ExchangeView
from labconsole_certificates.panel.page import CertificatesPage
from labconsole_certificates.panel.requests.requests_view import RequestsView
from labconsole_certificates.panel.revocation.revocation_view import RevocationView
from labconsole_certificates.panel.rotation.rotation_view import RotationView
from labconsole_certificates.panel.trust.bundle_dialog import BundleDialog
from labconsole_certificates.panel.trust.trust_view import TrustView
from labconsole_certificates.revocation.crl_operations import publish_crl, revoke
from labconsole_certificates.trust.bundle_creation import make_bundle
from labconsole_certificates.trust.bundle_import import import_bundle
from labconsole_certificates.trust.roots_and_pins import trust_root
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.shell.docks import toggle_bottom
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.theme.theme import ThemeMode

PAGE = "page:certificates:certificates"
LIGHT = (ThemeMode.LIGHT,)
ELSEWHERE = (("Thailand", "aerothai.co.th"), ("Việt Nam", "vatm.vn"), ("Indonesia", "airnav.example"))
"""States of other consoles, of which bundles come."""
T = TypeVar("T", bound=QWidget)


def take_certificates(camera: Camera, window: MainWindow) -> None:
    """The exchange between Singapore and Malaysia, which the source has tried out, and all other tabs."""
    with tempfile.TemporaryDirectory() as folder, PkiStore.open(pki_dir()) as store:
        toggle_bottom(window)
        singapore, malaysia = _begin(store)
        page = window.plugin_pages.open(PAGE)
        assert isinstance(page, CertificatesPage)
        page.building.finish()
        camera.settle(1.0)
        _exchange(camera, page)
        _prepare_the_rest(store, singapore, malaysia)
        camera.settle(1.5)
        _trust(camera, page, Path(folder))
        _others(camera, page)
        toggle_bottom(window)


def _begin(store: PkiStore) -> tuple[State, State]:
    """Two States of this console, each with a CA; one way of the exchange is done."""
    singapore, malaysia = (
        add_state(store, name, domain) for name, domain in (("Singapore", "caas.gov.sg"), ("Malaysia", "caam.gov.my"))
    )
    roots = {state.id: create_root(store, state, NewKey()) for state in (singapore, malaysia)}
    for truster, other in ((malaysia, singapore), (singapore, malaysia)):
        root = roots[other.id]
        if truster is malaysia:
            trust_root(store, truster, root, root.sha256)
        _certified(store, other, other, CertificateProfile.TLS_SERVER)
    _certified(store, malaysia, singapore, CertificateProfile.TLS_CLIENT)
    return singapore, malaysia


def _certified(
    store: PkiStore, requester: State, issuer: State, profile: CertificateProfile, days: int = 365
) -> CertificateRecord:
    name = f"swim.{requester.domain}"
    made = own_csrs.make_request(
        store, requester, issuer, NewKey(), profile, subject=f"CN={name},O={requester.name}", names=[name]
    )
    taken = received_csrs.import_request(store, requester, issuer, made.der, profile)
    record = received_csrs.approve(store, taken, days=days)
    own_csrs.import_certificate(store, exported(store.snapshot(), record, Form.CHAIN), issuer)
    return record


def _exchange(camera: Camera, page: CertificatesPage) -> None:
    """Click through the way that is missing."""
    view = page.show_tab(ExchangeView.key)
    assert isinstance(view, ExchangeView)
    camera.wait(lambda: view.next_button.text().startswith("Confirm"))
    camera.take("certificates-exchange")
    view.next_button.click()
    _step(camera, view, "Create the CSR")
    camera.wait(lambda: view.next_button.text().startswith("Approve"))
    view.details_button.click()
    asked = page.tabs.currentWidget().findChild(RequestsView)
    assert isinstance(asked, RequestsView)
    camera.wait(lambda: asked.pane.approve_button.isVisible())
    camera.settle()
    camera.take("certificates-request")
    asked.pane.approve_button.click()
    _act(camera)
    page.show_tab(ExchangeView.key)
    _step(camera, view, "Give the certificate")
    _step(camera, view, "Prove it")
    camera.wait(lambda: view.sentence.text().startswith("Both ways"))
    camera.take("certificates-proven")


def _step(camera: Camera, view: ExchangeView, beginning: str) -> None:
    camera.wait(lambda: view.next_button.text().startswith(beginning))
    view.next_button.click()


def _act(camera: Camera) -> None:
    """Start the action whose dialog comes up, and close it at its end."""
    dialog = _dialog(camera, OperationDialog)
    camera.wait(dialog.start_button.isEnabled)
    dialog.start_button.click()
    camera.wait(dialog.close_button.isVisible)
    dialog.close_button.click()
    camera.settle()


def _dialog(camera: Camera, kind: type[T]) -> T:
    found: list[T] = []

    def there() -> bool:
        widgets = QApplication.topLevelWidgets()
        found[:] = [each for each in widgets if isinstance(each, kind) and each.isVisible()]
        return bool(found)

    camera.wait(there)
    return found[0]


def _prepare_the_rest(store: PkiStore, singapore: State, malaysia: State) -> None:
    """What the other tabs show: something that runs out, something revoked, a rotation, a CRL."""
    _certified(store, singapore, singapore, CertificateProfile.MESSAGE_SIGNING, days=20)
    _certified(store, malaysia, singapore, CertificateProfile.MESSAGE_ENCRYPTION, days=60)
    lost = _certified(store, malaysia, singapore, CertificateProfile.MESSAGE_SIGNING)
    revoke(store, lost)
    root = store.snapshot().roots_of(singapore.id)[0]
    publish_crl(store, root)


def _trust(camera: Camera, page: CertificatesPage, folder: Path) -> None:
    """The matrix with States of other consoles, of which one is met for the first time."""
    view = page.show_tab(TrustView.key)
    assert isinstance(view, TrustView)
    files = [_bundle(folder, name, domain) for name, domain in ELSEWHERE]
    with PkiStore.open(pki_dir()) as store:
        for file, fingerprint in files[:-1]:
            import_bundle(store, "Singapore", file.read_bytes(), fingerprint)
    camera.settle(1.5)
    view.grid.choose(0, 2)
    camera.settle()
    camera.take("certificates-trust")
    _typed(camera, view, files[0][1])
    file, fingerprint = files[-1]
    view.take([file])
    dialog = _dialog(camera, BundleDialog)
    for edit, group in list(zip(dialog.question.typing.edits, grouped(fingerprint).split(), strict=True))[:6]:
        edit.textEdited.emit(group)
    camera.settle()
    camera.take("certificates-bundle", LIGHT, dialog)
    dialog.reject()


def _typed(camera: Camera, view: TrustView, fingerprint: str) -> None:
    """The root of a State elsewhere, half of whose fingerprint is typed."""
    dialog = view.trust()
    assert dialog is not None
    with PkiStore.open(pki_dir()) as store:
        dialog.choose(store.certificate(fingerprint).id)
    for edit, group in list(zip(dialog.question.typing.edits, grouped(fingerprint).split(), strict=True))[:11]:
        edit.textEdited.emit(group)
    camera.settle()
    camera.take("certificates-fingerprint", LIGHT, dialog)
    dialog.reject()


def _bundle(folder: Path, name: str, domain: str) -> tuple[Path, str]:
    """The trust bundle of a State that another console made; and the fingerprint that it reads out."""
    with PkiStore.open(folder / domain) as store:
        state = add_state(store, name, domain)
        root = create_root(store, state, NewKey())
        publish_crl(store, root)
        file = folder / f"{domain}.bundle"
        file.write_bytes(make_bundle(store, name))
    return file, root.sha256


def _others(camera: Camera, page: CertificatesPage) -> None:
    """Tree, rotation, revocation."""
    with PkiStore.open(pki_dir()) as store:
        newest = store.snapshot().certificates[-1]
    page.services.show_certificate(newest.id)
    camera.settle(1.5)
    camera.take("certificates-tree")
    rotation = page.show_tab(RotationView.key)
    assert isinstance(rotation, RotationView)
    camera.wait(lambda: rotation.model.rowCount() > 0)
    rotation.table.selectRow([row.name for row in rotation.model.records()].index("Singapore Root CA"))
    camera.settle()
    rotation.card.begin_button.click()
    _act(camera)
    camera.wait(lambda: rotation.card.step_button.text().startswith("&Make"))
    rotation.card.step_button.click()
    _act(camera)
    camera.wait(lambda: bool(rotation.card.peer_buttons))
    camera.take("certificates-rotation")
    revocation = page.show_tab(RevocationView.key)
    assert isinstance(revocation, RevocationView)
    camera.wait(lambda: revocation.issued.rowCount() > 0)
    revocation.issued_table.selectRow(0)
    revocation.responder.start_button.click()
    camera.wait(revocation.ask_button.isEnabled)
    camera.take("certificates-revocation")
    revocation.responder.stop_button.click()
    camera.wait(lambda: not revocation.responder.running)
