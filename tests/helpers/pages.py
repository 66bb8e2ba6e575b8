"""Pages of the window, opened and built to their end at once."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from labconsole_ui.panels.trial_panel import TrialPanel
from labconsole_ui.runtime.incremental import BuiltIncrementally
from labconsole_ui.shell.main_window import MainWindow


def opened(window: MainWindow, target: str) -> QWidget:
    """The complete page, by the name that the navigation has for it."""
    window.show_page(target)
    page = window.pages.currentWidget()
    assert page is not None
    if isinstance(page, BuiltIncrementally):
        page.building.finish()
    return page


def opened_trial(window: MainWindow, kind: str) -> TrialPanel:
    """The complete panel of a trial."""
    panel = window.open_trial(kind)
    assert panel is not None
    panel.building.finish()
    return panel
