"""The certificates of 40 States, each with all others: opening, finding and selecting is done in few pieces of work.

Their times are printed by `tests/benchmarks/window.py`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from labconsole.paths import pki_dir
from labconsole.security.pki.store import PkiStore
from labconsole_certificates.panel.certificates import certificates_view, selection_details
from labconsole_certificates.panel.certificates.certificates_view import CertificatesView
from labconsole_certificates.panel.certificates.tree_model import TreeModel
from labconsole_certificates.panel.page import CertificatesPage
from labconsole_ui.shell.main_window import MainWindow
from tests.helpers.many_states import STATES, certify_each_other
from tests.labconsole_certificates.panel.page_driver import Lab

ALL = STATES * (STATES + 1)
ROWS_IN_SIGHT = 60


@pytest.fixture
def forty(home: object) -> None:
    certify_each_other(pki_dir())


class Work:
    """Counts calls of functions, those in the window's thread apart."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.calls: Counter[str] = Counter()
        self.in_window: Counter[str] = Counter()

    def count(self, owner: Any, name: str) -> None:
        """Count calls of `name` of a module or class from now on."""
        function: Callable[..., Any] = getattr(owner, name)

        def counted(*given: Any, **named: Any) -> Any:
            self.calls[name] += 1
            self.in_window[name] += threading.current_thread() is threading.main_thread()
            return function(*given, **named)

        self._monkeypatch.setattr(owner, name, counted)


@pytest.mark.nightly
def test_forty_states_are_opened_found_and_selected_in_few_pieces(
    qtbot: QtBot, forty: None, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work(monkeypatch)
    work.count(certificates_view, "nodes_of")
    work.count(selection_details, "several_shown")
    for name in ("set_nodes", "set_filter", "data"):
        work.count(TreeModel, name)
    page = window.plugin_pages.open("page:certificates:certificates")
    assert isinstance(page, CertificatesPage)
    page.building.finish()
    lab = Lab(qtbot, window, page)
    view = lab.tab("certificates", CertificatesView)
    lab.until(lambda: view.browser.count.text() == f"{ALL} certificates")
    assert (work.calls["nodes_of"], work.in_window["nodes_of"], work.calls["set_nodes"]) == (1, 0, 1)
    work.calls.clear()
    qtbot.keyClicks(view.browser.search, "state 07 root")
    lab.until(lambda: view.browser.count.text() == f"{STATES + 1} found")
    assert work.calls["set_filter"] == 1, "once for a word, not for each letter"
    view.browser.search.clear()
    lab.until(lambda: view.browser.count.text() == f"{ALL} certificates")
    view.tree.expandAll()
    work.calls.clear()
    view.tree.selectAll()
    lab.until(lambda: view.detail.shown is not None and "certificates" in view.detail.shown.title)
    assert 1 <= work.calls["several_shown"] <= 2 and work.in_window["several_shown"] == 0
    columns = view.tree.model().columnCount()
    roles = 10
    assert 0 < work.calls["data"] <= 4 * ROWS_IN_SIGHT * columns * roles, "only what is in sight is drawn"
    with PkiStore.open(pki_dir()) as store, store.change() as change:
        change.add_state("State 40", "", local=False)
    lab.until(lambda: view.tree.tree.index_of(f"state:{STATES + 1}").isValid())
    assert 1 <= work.calls["nodes_of"] <= 2 and work.in_window["nodes_of"] == 0
    assert len(view.tree.selected_nodes()) == STATES * (STATES + 2)
    view.tree.select(f"certificate:{STATES}")
    lab.until(lambda: view.detail.shown is not None and view.detail.shown.record is not None)
