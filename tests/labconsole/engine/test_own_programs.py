"""Programs of the console never import what happens to be in the current directory: they hold passphrases and PINs."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from labconsole.security import os_keyring
from labconsole.security.token.errors import TokenError
from labconsole.security.token.module_process import Conversation, ask
from tests.helpers.practice import Bench

pytestmark = pytest.mark.usefixtures("started_programs")


@pytest.fixture
def executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that appears once a module of the current directory was executed."""
    trap, marker = tmp_path / "trap", tmp_path / "executed"
    trap.mkdir()
    for name in ("json", "numpy", "labconsole", "keyring"):
        (trap / f"{name}.py").write_text(f"open({str(marker)!r}, 'w').close()\n", encoding="utf-8")
    monkeypatch.chdir(trap)
    return marker


def test_workers_and_roles_import_nothing_of_the_current_directory(executed: Path, bench: Bench) -> None:
    """The arguments of a role's process name the role."""
    bench.submit({"count": 1_000_000, "rate": 1000.0, "roles": 2})
    bench.pump_until_counting()
    [worker] = [event.data["pid"] for _, event in bench.listener.events if event.message == "The worker's process."]
    roles = sorted(role.cmdline()[-1] for role in psutil.Process(worker).children())
    assert roles == ["counter-0", "counter-1"]
    bench.queue.cancel_all()
    bench.pump_until_idle()
    assert not executed.exists()


def test_the_keyring_process_imports_nothing_of_the_current_directory(
    executed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "none.Keyring")  # the backend of the tests starts no process
    os_keyring.read("labconsole-test-entry")
    assert not executed.exists()


def test_token_modules_import_nothing_of_the_current_directory(executed: Path) -> None:
    with pytest.raises(TokenError):
        ask("labconsole.security.token.cryptoki.inspection_process", {}, 20.0, "The module m.so")
    conversation = Conversation("labconsole.security.token.cryptoki.signing_process", 20.0, "The module m.so")
    with pytest.raises(TokenError):
        conversation.ask({})
    conversation.close()
    assert not executed.exists()
