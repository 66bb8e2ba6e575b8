"""Passphrases that are not stored are asked for in the window before a run is queued."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from labconsole.engine.queue import QueueState
from labconsole.security.lab_identities import lab_identities
from labconsole.store.records import NewScenario, RunStatus
from labconsole_amqp.parameters import AmqpParameters
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.widgets.secret_dialog import SecretDialog
from tests.helpers.authorities import new_authority
from tests.helpers.identities import write_identity
from tests.labconsole_ui.shown_messages import shown_sentences

pytestmark = pytest.mark.usefixtures("worker_threads")

KIND = "amqp.messaging"
PASSPHRASES = {"sender": "passphrase of state-x", "receiver": "passphrase of state-y"}


@pytest.fixture
def scenario(tmp_path: Path, home: Path) -> NewScenario:
    """Test 2 at the embedded broker with the operator's own keys, whose passphrases are not stored."""
    authority = new_authority("Own CA")
    sender, receiver = (write_identity(tmp_path, name, authority) for name in ("state-x", "state-y"))
    assert sender.trust is not None
    trust = tmp_path / "trust.pem"
    trust.write_bytes(sender.trust.read_bytes() + lab_identities().authority_file.read_bytes())
    parameters = AmqpParameters(
        test=2,
        count=50,
        trust=str(trust),
        sender_certificate=str(sender.certificate),
        sender_key=str(sender.key),
        receiver_certificate=str(receiver.certificate),
        receiver_key=str(receiver.key),
    )
    return NewScenario("own keys", KIND, parameters.model_dump(mode="json"))


def dialog_of(qtbot: QtBot, window: MainWindow) -> SecretDialog:
    qtbot.waitUntil(lambda: bool(window.findChildren(SecretDialog)))
    return window.findChildren(SecretDialog)[0]


def edit_for(dialog: SecretDialog, role: str) -> QLineEdit:
    return next(edit for edit in dialog.findChildren(QLineEdit) if f"the key of the {role}" in edit.accessibleName())


def enter(qtbot: QtBot, dialog: SecretDialog) -> None:
    for role, passphrase in PASSPHRASES.items():
        assert not dialog.continue_button.isEnabled()
        qtbot.keyClicks(edit_for(dialog, role), passphrase)
    qtbot.mouseClick(dialog.continue_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not dialog_open(dialog))


def dialog_open(dialog: SecretDialog) -> bool:
    try:
        return dialog.isVisible()
    except RuntimeError:  # Qt has deleted it
        return False


def wait_for_runs(qtbot: QtBot, window: MainWindow, number: int) -> list[RunStatus]:
    queue = window.services.bridge.queue
    qtbot.waitUntil(
        lambda: len(queue.items) == number and all(item.state is QueueState.DONE for item in queue.items),
    )
    return [item.status for item in queue.items]


def test_a_run_begins_when_its_passphrases_are_entered_and_they_are_forgotten_at_its_end(
    qtbot: QtBot, window: MainWindow, scenario: NewScenario, home: Path
) -> None:
    queue = window.services.bridge.queue
    assert window.launcher.run_scenario(scenario, "Own keys", 2, at_once=True) == []
    dialog = dialog_of(qtbot, window)
    assert queue.items == () and dialog.isModal()
    assert {edit.echoMode() for edit in dialog.findChildren(QLineEdit)} == {QLineEdit.EchoMode.Password}
    enter(qtbot, dialog)
    assert len(queue._secrets) == 2 and PASSPHRASES["sender"] not in repr(vars(queue))
    assert wait_for_runs(qtbot, window, 2) == [RunStatus.FINISHED] * 2, [item.reason for item in queue.items]
    assert queue._secrets == {}
    window.backups.timer.stop()
    qtbot.waitUntil(lambda: not list(home.glob("*.partial*")))  # a backup that has begun
    kept = [path for path in home.rglob("*") if path.is_file() and path.suffix != ".passphrase"]
    assert home / "runs.db" in kept
    for passphrase in PASSPHRASES.values():
        assert not any(passphrase.encode() in path.read_bytes() for path in kept)

    window.queue_view.select(queue.items[0].run_id)
    window.queue_view.repeat_action.trigger()
    enter(qtbot, dialog_of(qtbot, window))
    assert wait_for_runs(qtbot, window, 3)[2] is RunStatus.FINISHED


def test_cancel_queues_nothing_and_reports_it(qtbot: QtBot, window: MainWindow, scenario: NewScenario) -> None:
    window.launcher.run_scenario(scenario, "Own keys", at_once=True)
    dialog = dialog_of(qtbot, window)
    qtbot.keyClicks(edit_for(dialog, "sender"), PASSPHRASES["sender"])
    qtbot.mouseClick(dialog.cancel_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(shown_sentences(window)))
    assert window.services.bridge.queue.items == ()
    assert shown_sentences(window) == ["Nothing was queued, since no passphrase was given."]


def test_a_wrong_passphrase_fails_the_run_in_a_sentence(
    qtbot: QtBot, window: MainWindow, scenario: NewScenario
) -> None:
    window.launcher.run_scenario(scenario, "Own keys", at_once=True)
    dialog = dialog_of(qtbot, window)
    for role in PASSPHRASES:
        qtbot.keyClicks(edit_for(dialog, role), "not this one")
    qtbot.keyClick(edit_for(dialog, "receiver"), Qt.Key.Key_Return)
    assert wait_for_runs(qtbot, window, 1) == [RunStatus.FAILED]
    reason = window.services.bridge.queue.items[0].reason
    assert "does not open: the passphrase is wrong" in reason and "not this one" not in reason
