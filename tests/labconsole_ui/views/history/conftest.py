"""A history of three runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from labconsole.model.plugin import Plugins
from labconsole.store import edits
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.history.history_view import HistoryView
from tests.labconsole_ui.views.conftest import StoredRuns


@pytest.fixture
def filled(stored: StoredRuns) -> StoredRuns:
    """Runs 1 and 2 finished, 3 failed."""
    stored.finished(("Plain small", {"test": 1}), ("Signed flight plan", {"test": 3, "credit": 77}))
    [failed] = stored.queued(("Sealed", {"test": 4}), campaign="Night campaign")
    stored.start(failed)
    stored.end(failed, RunStatus.FAILED, "The certificate has expired.")
    edits.set_tags(stored.store, 1, ["reference"])
    return stored


@pytest.fixture
def make(
    qtbot: QtBot, bridge: QueueBridge, plugins: Plugins, theme: Theme, readers: Callable[[], Reader]
) -> Iterator[Callable[[StoredRuns], HistoryView]]:
    made: list[HistoryView] = []

    def history(stored: StoredRuns) -> HistoryView:
        view = HistoryView(readers, stored.path, bridge, theme, plugins)
        made.append(view)
        view.resize(1280, 700)
        view.show()
        view.activateWindow()
        qtbot.waitUntil(lambda: view._trial_columns is not None)
        return view

    yield history
    for view in made:
        view.close()
        view.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def view(make: Callable[[StoredRuns], HistoryView], filled: StoredRuns) -> HistoryView:
    return make(filled)
