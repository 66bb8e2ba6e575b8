"""The certificates of 40 States, each with all others: opening, finding, selecting do not hold up the window."""

from __future__ import annotations

import pytest
from cryptography import x509
from pytestqt.qtbot import QtBot

from labconsole.locations import pki_dir
from labconsole.security.pki.records import Origin, TokenKey
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.issuing import Issuer, issue, make_root
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.profiles import CertificateProfile
from labconsole.security.x509.validity import Validity
from labconsole_certificates.panel.certificates.view import CertificatesView
from labconsole_certificates.panel.page import CertificatesPage
from labconsole_ui.main_window import MainWindow
from tests.helpers.authorities import named
from tests.labconsole_certificates.panel.lab import Lab
from tests.labconsole_ui.shell.slot_watch import slots_watched

STATES = 40


@pytest.fixture
def forty(home: object) -> None:
    """Each State's root, and what it issued to the others; these all with one key, since only their number matters."""
    key, profile = generate(KeyType.P_256), CertificateProfile.TLS_CLIENT
    with PkiStore.open(pki_dir()) as store, store.change() as change:
        states = [change.add_state(f"State {number:02}", "", local=number < 2) for number in range(STATES)]
        for state in states:
            root_key = generate(KeyType.P_256)
            if state.local:
                change.add_key(state.id, state.name, root_key.public_key(), TokenKey("office", state.name))
            root = make_root(root_key, named(f"CN=Root of {state.name}"), Validity.for_days(900))
            change.add_certificate(root, origin=Origin.IMPORTED, state=state.id, profile=CertificateProfile.ROOT)
            for other in states:
                names = [x509.DNSName(f"client{other.id}.example")]
                subject = named(f"CN={other.name} at {state.name}")
                leaf = issue(Issuer(root, root_key), key.public_key(), subject, names, profile, Validity.for_days(300))
                change.add_certificate(leaf, origin=Origin.IMPORTED, state=other.id, profile=profile)


@pytest.mark.slow
def test_forty_states_open_and_are_found_smoothly(qtbot: QtBot, forty: None, window: MainWindow) -> None:
    with slots_watched() as watch:
        page = window.plugin_pages.open("page:certificates:certificates")
        assert isinstance(page, CertificatesPage)
        lab = Lab(qtbot, window, page)
        view = lab.tab("certificates", CertificatesView)
        lab.until(lambda: view.browser.count.text() == f"{STATES * (STATES + 1)} certificates")
        qtbot.keyClicks(view.browser.search, "state 07 root")
        lab.until(lambda: view.browser.count.text() == f"{STATES + 1} found")
        view.browser.search.clear()
        lab.until(lambda: view.browser.count.text() == f"{STATES * (STATES + 1)} certificates")
        view.tree.expandAll()
        view.tree.selectAll()
        lab.until(lambda: view.detail.shown is not None and "certificates" in view.detail.shown.title)
        with PkiStore.open(pki_dir()) as store, store.change() as change:
            change.add_state("State 40", "", local=False)
        lab.until(lambda: view.tree.tree.index_of(f"state:{STATES + 1}").isValid())
        assert len(view.tree.selected_nodes()) == STATES * (STATES + 2)
        view.tree.select(f"certificate:{STATES}")
        lab.until(lambda: view.detail.shown is not None and view.detail.shown.record is not None)
        for key in ("requests", "exchange", "trust", "rotation", "revocation", "audit"):
            page.show_tab(key)
            qtbot.wait(300)
    watch.assert_short()
