"""Which of the broker's fields the form shows for the embedded broker, an external one, and none."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QPushButton

from labconsole_amqp.panel.messaging import AmqpPanel
from labconsole_ui.shell.main_window import MainWindow
from tests.helpers.pages import opened_trial
from tests.labconsole_ui.conftest import kept_panels, module_window, shared, shown_window, theme

__all__ = ["kept_panels", "module_window", "shared", "shown_window", "theme"]

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")

OF_A_BROKER = ("host", "port", "username", "password_file", "leftover", "queue_depth", "server_name")


@pytest.fixture
def panel(shown_window: MainWindow) -> AmqpPanel:
    found = opened_trial(shown_window, "amqp.messaging")
    assert isinstance(found, AmqpPanel)
    return found


def shown(panel: AmqpPanel, **values: object) -> list[str]:
    panel.form.set_values(values)
    return [name for name in (*OF_A_BROKER, "broker_identity") if not panel.form.row(name).isHidden()]


def test_without_a_broker_only_the_identity_of_the_port_is_shown_and_that_with_tls(panel: AmqpPanel) -> None:
    assert shown(panel, broker="none", test=1) == []
    assert shown(panel, broker="none", test=2) == ["broker_identity"]
    assert shown(panel, broker="embedded", test=2) == ["queue_depth", "broker_identity"]
    assert shown(panel, broker="external", test=2) == [name for name in OF_A_BROKER if name != "queue_depth"]


def test_the_connection_is_tested_to_an_external_broker_alone(panel: AmqpPanel) -> None:
    (button,) = [one for one in panel.findChildren(QPushButton) if one.text().startswith("Test connection")]
    for broker, offered in (("none", False), ("external", True), ("embedded", False)):
        panel.form.set_values({"broker": broker})
        assert (button.isEnabled() and not button.isHidden()) is offered, broker


def test_several_ends_without_a_broker_are_refused_at_their_field(panel: AmqpPanel) -> None:
    panel.form.set_values({"broker": "none", "senders": 2, "numbered": True})
    assert panel.form.parameters is None
    assert "one sender connects to one receiver" in panel.form.row("senders").error_label.text()
