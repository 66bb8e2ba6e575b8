"""Adding a token in the window and on the terminal: the same refusal, the same entry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from labconsole.cli.main import main
from labconsole.engine.operation_process import OperationEnd, Outcome
from labconsole.model.plugin import Plugins
from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.lab_token import make_softhsm_token
from labconsole.security.token.named_tokens import load_configurations
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.theme.theme import Theme

TIMEOUT_MS = 20_000


@pytest.fixture
def made(tmp_path: Path) -> TokenConfiguration:
    """A token labelled `partition-1`."""
    return make_softhsm_token(tmp_path / "hsm", "partition-1", Secret("1234-user"), Secret("5678-officer"))


@pytest.fixture
def dialog(qtbot: QtBot, theme: Theme) -> Iterator[OperationDialog]:
    window = QWidget()
    window.show()
    opened = OperationDialog(window, Plugins.discover().operation("keypool.add-token"), theme)
    opened.show()
    yield opened
    shiboken6.delete(window)


def test_a_token_is_refused_and_added_as_on_the_terminal(
    qtbot: QtBot, dialog: OperationDialog, made: TokenConfiguration, capsys: pytest.CaptureFixture[str]
) -> None:
    ended: list[OperationEnd] = []
    dialog.ended.connect(ended.append)

    def start() -> OperationEnd:
        qtbot.waitUntil(dialog.start_button.isEnabled, timeout=TIMEOUT_MS)
        qtbot.mouseClick(dialog.start_button, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: bool(ended), timeout=TIMEOUT_MS)
        return ended.pop()

    (variable,) = ("=".join(one) for one in made.environment.items())
    entered = {"token": "office", "module": str(made.module), "label": "partition-1", "environment": [variable]}
    words = ["hsm", "add", "office", "--module", str(made.module), "--environment", variable, "--label"]

    dialog.form.set_values({**entered, "label": "partition-2"})
    refused = start()
    assert main([*words, "partition-2"]) == 1
    assert capsys.readouterr().err == f"labconsole: {refused.sentence}\n"
    assert refused.outcome is Outcome.FAILED and load_configurations() == {}

    qtbot.mouseClick(dialog.again_button, Qt.MouseButton.LeftButton)
    dialog.form.set_values({**entered, "wrap_mechanisms": ["0x1087"]})
    assert start().outcome is Outcome.DONE
    in_window = load_configurations()["office"]
    assert in_window.environment == made.environment and in_window.wrap_mechanisms == (0x1087,)
    assert main([*words, "partition-1", "--wrap-mechanism", "0x1087"]) == 0
    assert load_configurations()["office"] == in_window
