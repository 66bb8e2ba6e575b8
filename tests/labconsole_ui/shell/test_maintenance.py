"""Maintenance: a window renews CRLs in the background, or shows them on its start page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pytestqt.qtbot import QtBot

from labconsole.paths import pki_dir
from labconsole.security.pki.keys import opened_key
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Secret, SecretSource
from labconsole.security.x509.crl_issuing import issue_crl
from labconsole.security.x509.issuing import Issuer
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.authorities import create_root
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.states import add_state
from labconsole_ui.runtime.services import Services
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.views.start_page import StartPage


def add_due_crl(store: PkiStore, state: str, new: NewKey) -> None:
    """A State with a CA, whose CRL of 30 days was signed 25 days ago."""

    def prompt(_purpose: str) -> Secret:
        return Secret("typed")

    root = create_root(store, add_state(store, state), new, prompt=prompt)
    begun = datetime.now(UTC).replace(microsecond=0) - timedelta(days=25)
    assert root.key is not None
    with opened_key(store.directory, store.snapshot().key_by_id[root.key], prompt) as key:
        crl = issue_crl(Issuer(root.certificate, key), [], 1, Validity(begun, begun + timedelta(days=30)))
    with store.change() as change:
        change.add_crl(crl, root.id)


def test_crls_are_renewed_while_the_window_is_open_or_shown_on_the_start_page(
    qtbot: QtBot, home: Path, services: Services, open_window: Callable[[Services], MainWindow]
) -> None:
    with PkiStore.open(pki_dir()) as store:
        add_due_crl(store, "Kept", NewKey())
        add_due_crl(store, "Typed", NewKey(passphrase=SecretSource()))
        window = open_window(services)
        page = window.findChild(StartPage)
        assert not page.notices.isVisible()
        assert window.maintenance.timer.isActive()
        window.maintenance.begin()
        qtbot.waitUntil(page.notices.isVisible)
        assert "The CRL of Typed Root CA expires on " in page.notices.text() and "Kept" not in page.notices.text()
        newest = {crl.issuer: crl.number for crl in store.snapshot().newest_crls}
    assert sorted(newest.values()) == [1, 2]
