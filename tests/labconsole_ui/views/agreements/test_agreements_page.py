"""The page of agreements: a proposal is written, read, confirmed and concluded in the window."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from labconsole.clock import wall_now
from labconsole.engine.queue import QueueState
from labconsole.paths import data_dir, pki_dir
from labconsole.store.records import RunStatus
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.runs.run_files import ExportFormat
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.views.agreements.agreements_page import ACCEPT, CONCLUDE, PROPOSE, SHOW, AgreementsPage
from tests.labconsole.agreements.agreement_files import accept, propose
from tests.labconsole.agreements.two_owners import Owner, sender_profile, trusting_owners
from tests.labconsole_ui.shown_messages import shown_sentences
from tests.labconsole_ui.views.conftest import StoredRuns

pytestmark = pytest.mark.usefixtures("operation_threads")


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
    dialog = shown_dialog(qtbot, page.window())
    dialog.form.set_values({**dialog.form.values(), **values})
    return dialog


def shown_dialog(qtbot: QtBot, window: QWidget) -> OperationDialog:
    """The dialog of an operation, once it is shown."""

    def shown() -> list[OperationDialog]:
        return [one for one in window.findChildren(OperationDialog) if one.isVisible()]

    qtbot.waitUntil(lambda: bool(shown()))
    [dialog] = shown()
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


def test_an_agreed_run_waits_in_the_queue_for_its_time_and_is_cancelled_by_its_removal(
    qtbot: QtBot, page: AgreementsPage, window: MainWindow, owners: tuple[Owner, Owner], tmp_path: Path
) -> None:
    starts = (wall_now() + timedelta(hours=1)).replace(microsecond=0)
    files = propose(owners[0], "--starts", starts.isoformat(), folder=tmp_path)
    b = replace(owners[1], folder=data_dir())
    accept(b, files)
    queue = window.services.bridge.queue
    assert window.launcher.run_profile(files.id, at_once=True) == []
    qtbot.waitUntil(lambda: len(queue.items) == 1)
    [item] = queue.items
    assert (item.state, item.starts) == (QueueState.WAITING, starts)
    assert f"Waiting until {starts:%Y-%m-%d %H:%M:%S} UTC" in shown_sentences(window)[0]
    window.queue_view.select(item.run_id)
    window.queue_view.remove_action.trigger()
    assert queue.items == ()
    with window.services.reader() as reader:
        assert reader.run(item.run_id).row.status is RunStatus.CANCELLED


def test_a_bundle_is_signed_in_the_window(
    qtbot: QtBot, page: AgreementsPage, window: MainWindow, owners: tuple[Owner, Owner], tmp_path: Path
) -> None:
    with closing(StoredRuns(window.services.database)) as runs:
        runs.finished(("A", {"test": 1}), messages=50)
    window.files.export(ExportFormat.SIGNED_BUNDLE, [1])
    dialog = shown_dialog(qtbot, window)
    assert dialog.form.values()["sign"] == "b-signer"
    bundle = tmp_path / "results.lcz"
    dialog.form.set_values({**dialog.form.values(), "file": str(bundle)})
    assert done(qtbot, dialog).split() == [str(bundle), f"{bundle}.p7s"]
    said = owners[0].does("import", bundle, "--signed", "--db", tmp_path / "a.db")
    assert said.startswith("Signed by b-signer of State B, trusted here")


def test_without_an_identity_no_bundle_is_signed(qtbot: QtBot, window: MainWindow) -> None:
    window.files.export(ExportFormat.SIGNED_BUNDLE, [1])
    qtbot.waitUntil(lambda: bool(window.messages.entries()))
    assert "No identity can sign a bundle" in shown_sentences(window)[0]
