"""What holds for every test: a home of its own, no keyring, and nothing left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import platformdirs
import psutil
import pytest

_GRACE_S = 5.0
_USER_DATA = platformdirs.user_data_path("labconsole", appauthor=False)


@pytest.fixture(scope="session", autouse=True)
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A home for fixtures that serve more than one test; the developer's own stays untouched."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABCONSOLE_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
        yield


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the user's data in this test; the developer's keyring stays out of it."""
    home = tmp_path / "home"
    monkeypatch.setenv("LABCONSOLE_HOME", str(home))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    return home


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Fail a test that leaves a thread, a child process or a file; those that just end get a moment."""
    threads, children, files = _threads(), _children(), _files()
    yield
    left = {
        "threads": _left(_threads, threads),
        "processes": _left(_children, children),
        "files": _left(_files, files),
    }
    assert not any(left.values()), f"left behind: {left}"


def _left(look: Callable[[], set[str]], before: set[str]) -> set[str]:
    deadline = time.monotonic() + _GRACE_S
    while (left := look() - before) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _threads() -> set[str]:
    """Threads of Python; those that Qt starts appear as dummies and are its own affair."""
    return {f"{t.name} ({t.ident})" for t in threading.enumerate() if not t.name.startswith("Dummy-")}


def _children() -> set[str]:
    return {f"{child.pid} {' '.join(_command(child))}" for child in psutil.Process().children(recursive=True)}


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline() or [process.status()]
    except psutil.NoSuchProcess:
        return ["gone"]


def _files() -> set[str]:
    """What lies where a careless test would write: the working directory, and the user's own data."""
    return {str(path) for folder in (Path.cwd(), _USER_DATA) for path in folder.glob("*")}
