"""Each control of the views has a name, and the keyboard reaches it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QWidget
from pytestqt.qtbot import QtBot

from labconsole.model.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.comparison.comparison_view import ComparisonView
from labconsole_ui.views.history.history_view import HistoryView
from labconsole_ui.views.live.live_view import LiveView
from labconsole_ui.views.run.run_view import RunView
from tests.labconsole_ui.controls import controls
from tests.labconsole_ui.views.conftest import StoredRuns

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.mark.parametrize("which", ["history", "run", "side by side", "live"])
def test_every_control_has_a_name_and_takes_the_keyboard(
    which: str,
    stored: StoredRuns,
    bridge: QueueBridge,
    plugins: Plugins,
    theme: Theme,
    readers: Callable[[], Reader],
    closing: Callable[[QWidget], None],
    qtbot: QtBot,
) -> None:
    run_ids = stored.finished(("Plain", {"test": 1}), ("Signed", {"test": 3}), messages=100)
    makers: dict[str, Callable[[], QWidget]] = {
        "history": lambda: HistoryView(readers, stored.path, bridge, theme, plugins),
        "run": lambda: RunView(readers, run_ids[0], plugins, theme, bridge),
        "side by side": lambda: ComparisonView(readers, run_ids, plugins, theme),
        "live": lambda: LiveView(bridge, plugins, theme),
    }
    ready: dict[str, Callable[[QWidget], bool]] = {
        "history": lambda view: view.model.rowCount() == 2,
        "run": lambda view: len(view.plots) == 4,
        "side by side": lambda view: view.table_data is not None,
        "live": lambda view: True,
    }
    view = makers[which]()
    closing(view)
    view.show()
    qtbot.waitUntil(lambda: ready[which](view))
    found = controls(view)
    assert len(found) >= {"side by side": 4}.get(which, 5)
    for widget in found:
        text = widget.text() if isinstance(widget, QAbstractButton) else ""
        assert widget.accessibleName() or text, widget
        assert widget.focusPolicy() & Qt.FocusPolicy.TabFocus, widget
