"""Merging in the window: offered to a console that plays one end, on its database; the merged run is opened."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from labconsole.engine.operation_process import OperationEnd, Outcome
from labconsole.model.operation import Result
from labconsole_amqp.panel.messaging import AmqpPanel
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.runtime.services import Services
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.views.run.run_view import RunView
from tests.helpers.pages import opened_trial
from tests.labconsole_ui.conftest import bridge, home, open_window, services, theme, window

__all__ = ["bridge", "home", "open_window", "services", "theme", "window"]

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")


def test_a_console_that_plays_one_end_offers_to_merge_runs_of_its_database(
    window: MainWindow, services: Services, qtbot: QtBot
) -> None:
    panel = opened_trial(window, "amqp.messaging")
    assert isinstance(panel, AmqpPanel)
    assert panel.merge_button.isHidden()
    panel.form.set_values({"broker": "external", "mode": "sender"})
    assert not panel.merge_button.isHidden()
    panel.merge_button.click()
    qtbot.waitUntil(lambda: len(window.findChildren(OperationDialog)) == 1)
    (dialog,) = window.findChildren(OperationDialog)
    assert dialog.form.values()["db"] == str(services.database)
    dialog.ended.emit(OperationEnd(Outcome.FAILED, "The trial id is missing at the sender."))
    assert window.pages.currentWidget() is panel
    dialog.ended.emit(OperationEnd(Outcome.DONE, "", Result(("Merged.",), {"run": 3, "new": True})))
    view = window.pages.currentWidget()
    assert isinstance(view, RunView) and view.run_id == 3
    dialog.reject()
