"""A window for tests that only look: opened once for a test module, and reset after each test."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import shiboken6
from PySide6.QtCore import QEvent, QSettings
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from labconsole.engine.queue import QueueState, RunQueue
from labconsole.model.plugin import Plugins
from labconsole.store.edits import purge_trash, trash
from labconsole_ui.panels.trial_panel import TrialPanel
from labconsole_ui.runtime.page_targets import START
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.runtime.services import Services
from labconsole_ui.runtime.settings import FILE_NAME, WindowState
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.theme.theme import Theme

SIZE = (1280, 800)
_EMPTY_QUEUE_S = 60.0


@dataclass(frozen=True)
class PanelState:
    """What a test can change in a trial's panel: it is the same before each test."""

    values: dict[str, Any]
    profile: str
    scenario: str
    repeats: int
    folded: tuple[bool, ...]
    problems: tuple[str, ...]
    placement: dict[str, Any]

    @classmethod
    def of(cls, panel: TrialPanel) -> PanelState:
        """The state of a complete panel."""
        presets = panel.presets
        return cls(
            panel.form.values(),
            presets.profile_name,
            presets.scenario.name if presets.scenario is not None else "",
            panel.run_bar.repeats_box.value(),
            tuple(section.folded for section in panel.form.sections),
            panel.form.problems,
            dict(presets.placement),
        )

    def restore(self, panel: TrialPanel) -> bool:
        """Reset a panel. Returns whether it has this state again."""
        presets = panel.presets
        presets.load_profiles()
        presets.remember(self.profile, self.scenario)
        panel.form.set_base(presets.scenario.parameters if presets.scenario is not None else None)
        panel.form.set_values(self.values)
        panel.run_bar.repeats_box.setValue(self.repeats)
        panel.run_bar.help_label.clear()
        for section, folded in zip(panel.form.sections, self.folded, strict=True):
            if section.folded is not folded:
                section.fold_button.click()
        panel.form.validate()
        return PanelState.of(panel) == self and presets.modified_label.isHidden()


class SharedWindow:
    """A shown window on a database without runs, in a home of its own."""

    def __init__(self, home: Path, theme: Theme, app: QApplication, kept_panels: Collection[str] = ()) -> None:
        """Panels of the trials `kept_panels` stay open between tests."""
        self.home = home
        self._kept = kept_panels
        self._app = app
        self._panels: dict[str, PanelState] = {}
        bridge = QueueBridge(lambda wake: RunQueue(home / "runs.db", wake=wake), app)
        state = WindowState(home / FILE_NAME)
        self.services = Services(home / "runs.db", Plugins.discover(), bridge, theme, state)
        self.window = MainWindow(self.services)
        self.window.resize(*SIZE)
        self.window.show()
        self._reset_layout()

    def activate(self) -> None:
        """Give the window the keyboard, which a window of another test may have had."""
        self.window.activateWindow()
        QTest.qWaitForWindowActive(self.window)

    def trial(self, kind: str) -> TrialPanel:
        """The complete panel of a trial, in the state of its first opening."""
        panel = self.window.open_trial(kind)
        assert panel is not None
        panel.building.finish()
        self._panels.setdefault(kind, PanelState.of(panel))
        return panel

    def reset(self) -> None:
        """Empty the queue and the database, close dialogs and pages, reset form values, messages and settings."""
        window, bridge = self.window, self.services.bridge
        while (popup := QApplication.activePopupWidget()) is not None:
            popup.close()
        for dialog in _dialogs(window):
            dialog.close()
            dialog.deleteLater()
        bridge.queue.cancel_all()
        _wait(lambda: all(item.state is QueueState.DONE for item in bridge.queue.items))
        bridge.queue.clear_done()
        bridge.queue.resume()
        bridge.set_live_plots(True)
        self._purge_runs()
        for page in window.pages.all_pages():
            kind = page.objectName().removeprefix("trial:")
            keep = kind in self._kept and kind in self._panels and isinstance(page, TrialPanel)
            if not (keep and self._panels[kind].restore(page)):
                window.pages.close_page(window.pages.indexOf(page))
        window.show_page(START)
        for entry in window.messages.entries():
            window.messages.withdraw(entry.message)
        window.log_pane.clear()
        self._remove_settings()
        window.resize(*SIZE)
        if window.saveState() != self._layout:
            self._reset_layout()
        if (focus := window.focusWidget()) is not None:
            focus.clearFocus()
        self._app.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
        assert bridge.queue.items == () and not bridge.queue.paused
        assert not _dialogs(window), "an open dialog would be seen by the next test"

    def remove_directories(self) -> None:
        """Remove what tests store next to the database of runs: certificates, keys and tokens."""
        for path in self.home.iterdir():
            if path.is_dir():
                shutil.rmtree(path)

    def close(self) -> None:
        """Delete the window, and close its queue."""
        self.reset()
        shiboken6.delete(self.window)
        self.services.bridge.close()
        self.services.bridge.setParent(None)

    def _reset_layout(self) -> None:
        """It takes as long as all else in a reset."""
        self.window.reset_layout()
        self._app.processEvents()
        self._layout = self.window.saveState()

    def _purge_runs(self) -> None:
        with self.services.reader() as reader:
            run_ids = [row.id for row in reader.runs()]
        if run_ids:
            store = self.services.bridge.queue.store
            trash(store, run_ids)
            purge_trash(store)

    def _remove_settings(self) -> None:
        path = str(self.services.state.path)
        QSettings(path, QSettings.Format.IniFormat).clear()  # Qt shares what it has read of a file


def _dialogs(window: MainWindow) -> list[QWidget]:
    """The visible windows that belong to this one."""
    return [
        widget
        for widget in QApplication.topLevelWidgets()
        if widget.isVisible() and widget is not window and window in _owners(widget)
    ]


def _owners(widget: QWidget) -> list[QWidget]:
    """The parents of a widget, beyond the edges of windows."""
    owners: list[QWidget] = []
    owner = widget.parentWidget()
    while owner is not None:
        owners.append(owner)
        owner = owner.parentWidget()
    return owners


def _wait(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _EMPTY_QUEUE_S
    while not done():
        assert time.monotonic() < deadline, "the queue does not become empty"
        QTest.qWait(5)
