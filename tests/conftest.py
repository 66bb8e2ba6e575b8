"""What holds for every test: a home of its own, no keyring, no display needed, and nothing left behind."""

from __future__ import annotations

import gc
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import platformdirs
import psutil
import pytest

from tests.helpers.forked_programs import own_children, programs_forked, programs_started

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication
    from pytestqt.qtbot import QtBot

pytest_plugins = (
    "tests.helpers.suite_cost",
    "tests.helpers.suite_schedule",
    "tests.helpers.lab_home",
    "tests.helpers.folder_resources",
)
_T = TypeVar("_T")
_GRACE_S = 5.0
_TIMEOUT_MS = 120_000
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")  # without a display Qt would abort pytest
if "pytestqt" in sys.modules:
    from labconsole_ui.runtime.qt_import import import_qt  # some tests run where there is no Qt

    import_qt()  # as the window does, and before other modules of tests
os.environ["LANGUAGE"] = "C"  # argparse looks for a translation of each group of each parser: 6 ms a command line


@pytest.fixture(scope="session", autouse=True)
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home for fixtures that serve more than one test; the developer's own stays untouched.

    Gives the directory of user data that a program without `LABCONSOLE_HOME` would use. On Linux it is the test run's
    own, so that consoles of other processes do not write there.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("user-data")))
        patch.setenv("LABCONSOLE_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
        yield platformdirs.user_data_path("labconsole", appauthor=False)


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The hundreds of processes that tests start compile no module twice, though Python is told to write no bytecode.

    What one of them compiles is kept for the others, away from the sources, and as long as pytest keeps its folders.
    Test processes that run in parallel share it.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with pytest.MonkeyPatch.context() as patch:
        if sys.dont_write_bytecode:
            patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
            patch.setenv("PYTHONPYCACHEPREFIX", str(folder / "bytecode"))
        yield


@pytest.fixture(scope="session", autouse=True)
def forked_programs(compiled_once: None) -> Iterator[None]:
    """Programs of the console that tests start are forked from one that has imported what they need."""
    with programs_forked():
        yield


@pytest.fixture(autouse=True)
def started_in_nightly_tests(request: pytest.FixtureRequest) -> Iterator[None]:
    """Programs of the console that nightly tests start are not forked."""
    with programs_started() if request.node.get_closest_marker("nightly") else nullcontext():
        yield


@pytest.fixture
def started_programs() -> Iterator[None]:
    """Programs of the console are started: their command line, environment, memory or imports are what is tested."""
    with programs_started():
        yield


@pytest.fixture(scope="session")
def qapp(qapp: QApplication) -> Iterator[QApplication]:
    """As the window's: garbage is collected in its thread alone, and never looked for in what was loaded until then."""
    from labconsole_ui.runtime.garbage_collection import (
        WindowCollector,  # most tests do without Qt, and some where there is none
    )

    gc.collect()
    gc.freeze()
    collector = WindowCollector(qapp)
    yield qapp
    collector.stop()


@pytest.fixture
def qtbot(qtbot: QtBot) -> Iterator[QtBot]:
    """Waits as long for a state as a busy machine needs to reach it, instead of five seconds.

    The widgets that it closes are deleted with the test: each change of the theme in later ones would style them, too.
    """
    for name in ("waitUntil", "waitSignal", "waitSignals"):
        setattr(qtbot, name, partial(getattr(qtbot, name), timeout=_TIMEOUT_MS))
    yield qtbot
    from PySide6.QtCore import QCoreApplication, QEvent  # most tests do without Qt, and some where there is none

    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


@pytest.fixture(scope="session")
def new_homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Paths of homes, none of which exists."""
    return (tmp_path_factory.getbasetemp() / "homes" / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def own_home(new_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the user's data in this test; the developer's keyring stays out of it.

    It is not in the test's `tmp_path`: most tests need no folder, and each new one makes pytest list all before it.
    """
    home = next(new_homes)
    monkeypatch.setenv("LABCONSOLE_HOME", str(home))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    return home


@pytest.fixture(autouse=True)
def nothing_left_behind(shared_home: Path) -> Iterator[None]:
    """Fail a test that leaves a thread, a child process or a file; those that just end get a moment."""
    folders = (os.getcwd(), str(shared_home))  # noqa: PTH109 - twice a test: paths as text take a tenth of the time
    threads, processes, files = _threads(), own_children(), _files(folders)
    yield
    left = {
        "threads": _left(lambda: _threads() - threads),
        "processes": _commands(_left(lambda: own_children() - processes)),
        "files": _left(lambda: _files(folders) - files),
    }
    assert not any(left.values()), f"left behind: {left}"


def _left(look: Callable[[], set[_T]]) -> set[_T]:
    deadline = time.monotonic() + _GRACE_S
    while (left := look()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _threads() -> set[str]:
    """Threads of Python; those that Qt starts appear as dummies and are its own affair."""
    return {f"{t.name} ({t.ident})" for t in threading.enumerate() if not t.name.startswith("Dummy-")}


def _commands(pids: Iterable[int]) -> set[str]:
    """The processes of these ids with their command lines; none that has exited."""
    found = set()
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            try:
                found.add(f"{pid} {' '.join(process.cmdline())}")
            except psutil.ZombieProcess:
                found.add(f"{pid} {process.name()} (zombie) of {process.ppid()}")
    return found


def _files(folders: Iterable[str]) -> set[str]:
    """What is where a careless test would write: the working directory, and the user's own data.

    Names with a dot are left out: tools that are started next to the tests keep their caches so, and the installer what
    it has fetched in `build`.
    """
    found = set()
    for folder in folders:
        with suppress(FileNotFoundError):
            found |= {f"{folder}/{name}" for name in os.listdir(folder) if name[0] != "." and name != "build"}  # noqa: PTH208
    return found
