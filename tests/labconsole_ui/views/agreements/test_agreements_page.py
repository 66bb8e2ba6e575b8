"""The page of agreements: a proposal is written, read, confirmed and concluded in the window."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from labconsole.paths import pki_dir
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.views.agreements.agreements_page import ACCEPT, CONCLUDE, PROPOSE, SHOW, AgreementsPage
from tests.labconsole.agreements.two_owners import Owner, sender_profile, trusting_owners


@pytest.fixture(scope="module")
def owners(tmp_path_factory: pytest.TempPathFactory) -> tuple[Owner, Owner]:
    return trusting_owners(tmp_path_factory.mktemp("owners"))


@pytest.fixture
def page(window: MainWindow, owners: tuple[Owner, Owner]) -> AgreementsPage:
    """The window's console is that of State B."""
    shutil.copytree(owners[1].pki, pki_dir(), dirs_exist_ok=True)
    found = window.plugin_pages.open("page:console:agreements")
    assert isinstance(found, AgreementsPage)
    return found


def opened(qtbot: QtBot, page: AgreementsPage, step: str, **values: object) -> OperationDialog:
    """The dialog of a step, filled in."""
    qtbot.mouseClick(page.buttons[step], Qt.MouseButton.LeftButton)

    def shown() -> list[OperationDialog]:
        return [one for one in page.window().findChildren(OperationDialog) if one.isVisible()]

    qtbot.waitUntil(lambda: bool(shown()))
    [dialog] = shown()
    dialog.form.set_values({**dialog.form.values(), **values})
    return dialog


def done(qtbot: QtBot, dialog: OperationDialog) -> str:
    """What the step reports, once it has finished; the dialog is closed."""
    qtbot.waitUntil(dialog.start_button.isEnabled)
    with qtbot.waitSignal(dialog.ended) as finished:
        qtbot.mouseClick(dialog.start_button, Qt.MouseButton.LeftButton)
    end = finished.args[0]
    dialog.reject()
    return str(end.sentence)


def test_the_steps_of_both_owners_work_in_the_window(
    qtbot: QtBot, page: AgreementsPage, owners: tuple[Owner, Owner], tmp_path: Path
) -> None:
    a, _ = owners
    theirs, answer = tmp_path / "theirs.pem", tmp_path / "answer.pem"
    a.does("agreements", "propose", sender_profile(tmp_path / "sender.toml"), theirs, "--identity", "a-signer")
    assert "this console plays receiver" in done(qtbot, opened(qtbot, page, SHOW, file=str(theirs)))

    accepting = opened(qtbot, page, ACCEPT, file=str(theirs), out=str(answer), identity="b-signer")
    qtbot.waitUntil(lambda: "- Receives 50 messages from q." in accepting.confirmation.loss.text())
    assert not accepting.start_button.isEnabled()
    accepting.confirmation.edit.setText(accepting.confirmation.loss.text().partition("SHA-256 ")[2][:8])
    assert "is accepted" in done(qtbot, accepting)
    assert "has accepted the proposal" in a.does("agreements", "conclude", answer)

    own = tmp_path / "own.pem"
    profile = str(sender_profile(tmp_path / "own.toml"))
    proposing = opened(qtbot, page, PROPOSE, profile=profile, file=str(own), identity="b-signer")
    assert "signed by b-signer of State B" in done(qtbot, proposing)
    refused = done(qtbot, opened(qtbot, page, CONCLUDE, file=str(answer)))
    assert "has proposed no agreement" in refused
