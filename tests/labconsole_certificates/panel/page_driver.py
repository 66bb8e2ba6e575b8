"""The certificates page in a real window, with States in its database, driven by clicks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from labconsole.engine.operation_process import Outcome
from labconsole.paths import pki_dir
from labconsole.security.pki.records import CertificateRecord, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole_certificates.operations import own_csrs, received_csrs
from labconsole_certificates.operations.authorities import create_root
from labconsole_certificates.operations.export import Form, exported
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.states import add_state
from labconsole_certificates.panel.page import CertificatesPage
from labconsole_certificates.panel.tab import Tab
from labconsole_certificates.trust import roots_and_pins
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.shell.main_window import MainWindow

TIMEOUT_MS = 120_000
T = TypeVar("T", bound=Tab)
D = TypeVar("D", bound=QDialog)


@dataclass
class Lab:
    """The page, and the database beneath it."""

    qtbot: QtBot
    window: MainWindow
    page: CertificatesPage

    def tab(self, key: str, kind: type[T]) -> T:
        """Click a tab to the front, and build it to its end."""
        place = [self.page.tabs.widget(number).objectName() for number in range(self.page.tabs.count())].index(key)
        bar = self.page.tabs.tabBar()
        self.qtbot.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.tabRect(place).center())
        found = self.page.tabs.currentWidget().findChild(kind)
        assert isinstance(found, kind) and isinstance(found, Tab)
        found.building.finish()
        return found

    def click(self, button: QAbstractButton) -> None:
        """Click a button as soon as it can be clicked."""
        self.until(lambda: button.isVisible() and button.isEnabled())
        self.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)

    def until(self, condition: object) -> None:
        """Wait until it is so."""
        self.qtbot.waitUntil(condition, timeout=TIMEOUT_MS)

    def dialog(self, kind: type[D]) -> D:
        """The dialog of this kind, once it is there."""
        found: list[D] = []

        def there() -> bool:
            found[:] = [each for each in QApplication.topLevelWidgets() if isinstance(each, kind) and each.isVisible()]
            return bool(found)

        self.until(there)
        return found[0]

    def do_action(self) -> str:
        """Start the action whose dialog is open, wait for its good end, close it; returns its sentence."""
        dialog = self.dialog(OperationDialog)
        ends = []
        dialog.ended.connect(ends.append)
        self.click(dialog.start_button)
        self.until(lambda: bool(ends))
        assert ends[0].outcome is Outcome.DONE, ends[0].sentence
        self.click(dialog.close_button)
        self.until(lambda: not [each for each in QApplication.topLevelWidgets() if isinstance(each, OperationDialog)])
        sentence: str = ends[0].sentence
        return sentence

    def add_state(self, name: str, domain: str = "") -> None:
        """Fill the dialog that adds a State, start it, and wait until it has made way for the next one."""
        dialog = self.dialog(OperationDialog)
        for key, text in (("state", name), ("domain", domain)):
            self.qtbot.keyClicks(dialog.form.row(key).editor.focusProxy(), text)
        self.click(dialog.start_button)
        self.until(lambda: not isValid(dialog) or not dialog.isVisible())

    def operations(self) -> list[str]:
        """Names of the operations in the audit list, oldest first."""
        return [entry.subject for entry in reversed(self.snapshot().audit) if entry.what == "operation"]

    def drop(self, target: QWidget, path: Path) -> None:
        """Drop a file on a widget."""
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(path))])
        event = QDropEvent(
            QPointF(10, 10),
            Qt.DropAction.CopyAction,
            data,
            Qt.MouseButton.LeftButton,
            Qt.KeyboardModifier.NoModifier,
        )
        target.dropEvent(event)

    def snapshot(self) -> Snapshot:
        """What the database holds now."""
        with PkiStore.open(pki_dir()) as store:
            return store.snapshot()


def local_state(store: PkiStore, name: str, domain: str) -> tuple[State, CertificateRecord]:
    """A State of this console with a root."""
    state = add_state(store, name, domain)
    return state, create_root(store, state, NewKey())


def certified(store: PkiStore, requester: State, issuer: State, profile: CertificateProfile) -> CertificateRecord:
    """A certificate by the CSR method, imported by the client."""
    names = [f"swim.{requester.domain}"] if profile is CertificateProfile.TLS_SERVER else []
    made = own_csrs.make_request(store, requester, issuer, NewKey(), profile, subject="", names=names)
    taken = received_csrs.import_request(store, requester, issuer, made.der, profile)
    record = received_csrs.approve(store, taken)
    own_csrs.import_certificate(store, exported(store.snapshot(), record, Form.CHAIN), issuer)
    return record


def trust(store: PkiStore, truster: State, root: CertificateRecord) -> None:
    """Trust in a root, its fingerprint typed."""
    roots_and_pins.trust_root(store, truster, root, root.sha256)
