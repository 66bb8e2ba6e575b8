"""The facts below the form: sizes of payload and message, and the volume of a run, also of drawn sizes."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from labconsole_amqp.panel.messaging import AmqpPanel
from labconsole_ui.shell.main_window import MainWindow
from tests.helpers.pages import opened_trial
from tests.labconsole_ui.conftest import kept_panels, module_window, shared, shown_window, theme

__all__ = ["kept_panels", "module_window", "shared", "shown_window", "theme"]

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")


def facts(panel: AmqpPanel) -> dict[str, str]:
    panel.form.validate()
    assert panel.form.parameters is not None
    return {fact.name: fact.value for fact in panel.facts(panel.form.parameters)}


def test_facts_of_drawn_sizes_are_means_with_the_range(shown_window: MainWindow, qtbot: QtBot) -> None:
    panel = opened_trial(shown_window, "amqp.messaging")
    assert isinstance(panel, AmqpPanel)
    panel.form.set_values({"payload": "fpl-tac", "count": 1000})
    assert facts(panel) == {
        "Payload": "237 B",
        "Encoded message": "282 B",
        "Overhead": "45 B",
        "Volume of a run": "282 kB",
    }
    panel.form.set_values({"message_sizes": "uniform", "smallest_size": 100, "largest_size": 1100})
    assert facts(panel)["Payload, mean"] == "600 B (116 B to 1,084 B)"
    assert facts(panel)["Encoded message"] == "648 B"
    panel.form.set_values({"message_sizes": "mix"})
    assert facts(panel)["Payload, mean"].endswith("(11 B to 42,708 B)")


def test_only_the_parameters_of_the_distribution_are_shown(shown_window: MainWindow, qtbot: QtBot) -> None:
    panel = opened_trial(shown_window, "amqp.messaging")
    names = ("payload", "smallest_size", "median_size", "share_small", "size_seed")

    def shown(choice: str) -> list[str]:
        panel.form.set_values({"message_sizes": choice})
        return [name for name in names if not panel.form.row(name).isHidden()]

    assert shown("payload") == ["payload"]
    assert shown("uniform") == ["payload", "smallest_size", "size_seed"]
    assert shown("log-normal") == ["payload", "smallest_size", "median_size", "size_seed"]
    assert shown("mix") == ["share_small", "size_seed"]
