"""The form of a soak: how many messages it sends, and how much disk that takes, before it runs."""

from __future__ import annotations

import pytest

from labconsole_amqp.panel.messaging import AmqpPanel
from labconsole_ui.shell.main_window import MainWindow
from tests.helpers.pages import opened_trial
from tests.labconsole_ui.conftest import bridge, home, open_window, services, theme, window

__all__ = ["bridge", "home", "open_window", "services", "theme", "window"]

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")


def test_messages_and_disk_space_of_a_soak_are_shown_before_the_run(window: MainWindow) -> None:
    panel = opened_trial(window, "amqp.messaging")
    assert isinstance(panel, AmqpPanel)
    panel.form.set_values({"loop": "soak", "rate": 1000.0, "hours": 8.0, "senders": 2, "numbered": True})
    parameters = panel.form.parameters
    assert parameters is not None
    facts = {fact.name: fact for fact in panel.facts(parameters)}
    assert facts["Messages"].value == "57,600,000"
    assert (
        facts["Disk while it runs"].value.endswith("GB") and "Free on the disk" in facts["Disk while it runs"].meaning
    )
    assert facts["Disk kept"].value.endswith("GB")
    panel.form.set_values({"loop": "open"})
    parameters = panel.form.parameters
    assert parameters is not None
    assert "Disk kept" not in {fact.name for fact in panel.facts(parameters)}
