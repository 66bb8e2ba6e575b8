"""An interrupt at each call of a piece of work: what it opened is closed, and Python reports no ignored exception."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from labconsole.cli.interrupts import raise_when_interrupted
from labconsole.output.export_file import complete_file
from labconsole.store.reader import Reader
from tests.helpers.practice import Bench


@pytest.fixture
def ignored(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The exceptions that Python reports as ignored, since they reached no handler."""
    reports: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: reports.append(f"{report.object}: {report.exc_value!r}"))
    return reports


@pytest.fixture
def interrupts_raise() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    raise_when_interrupted()
    yield
    signal.signal(signal.SIGINT, before)


def interrupted_at(place: int, work: Callable[[], object], files: tuple[str, ...]) -> bool | None:
    """Interrupt `work` where Python would: as it enters or leaves a function for the `place`-th time in these files.

    Returns whether the work ended by it, and None where it has fewer such places.
    """
    passed = 0

    def interrupt(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal passed
        if event in ("call", "c_return") and frame.f_code.co_filename.endswith(files):
            passed += 1
            if passed == place + 1:
                handler = signal.getsignal(signal.SIGINT)
                assert callable(handler)
                sys.setprofile(None)
                handler(signal.SIGINT, frame)

    before = sys.getprofile()
    sys.setprofile(interrupt)
    try:
        work()
        _ = len("")  # an interrupt that waits is raised at the next call
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(before)
    return False if passed > place else None


@pytest.mark.usefixtures("interrupts_raise")
def test_an_interrupt_at_any_call_of_a_reader_ends_its_transaction(tmp_path: Path, ignored: list[str]) -> None:
    """A generator that `contextlib` had just entered rolled back when the database was closed."""
    Bench(tmp_path).close()

    def read() -> None:
        with Reader(tmp_path / "runs.db") as reader:
            reader.live_runs()
            reader.events(1)

    files = ("contextlib.py", "database_file.py", "run_reader.py")
    place = 0
    gc.collect()
    gc.freeze()  # all that is looked at below is what the reader has left
    while (ended := interrupted_at(place, read, files)) is not None:
        gc.collect()
        assert ended and not ignored, place
        place += 1
    assert place > 50


@pytest.mark.usefixtures("interrupts_raise")
def test_an_interrupt_at_any_call_leaves_all_files_of_an_export_or_none(tmp_path: Path, ignored: list[str]) -> None:
    folder = tmp_path / "out"
    names = {"first.csv", "second.csv"}

    def write() -> None:
        with ExitStack() as together:
            for name in sorted(names):
                together.enter_context(complete_file(folder / name)).write_text("content")

    kept = set()
    place = 0
    while (ended := interrupted_at(place, write, ("contextlib.py", "export_file.py"))) is not None:
        assert ended and not ignored, place
        kept.add(folder.exists())
        if folder.exists():
            assert {path.name for path in folder.iterdir()} == names, place
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()
        place += 1
    assert kept == {True, False}


@pytest.mark.usefixtures("interrupts_raise")
def test_an_interrupt_in_a_finaliser_is_raised_after_it(ignored: list[str]) -> None:
    class Finalised:
        def __del__(self) -> None:
            closed.append(str(self))

    closed: list[str] = []

    def work() -> None:
        Finalised()

    place = 0
    while (ended := interrupted_at(place, work, (__file__,))) is not None:
        assert ended and not ignored, place
        place += 1
    assert len(closed) >= place - 2 > 0


@contextmanager
def slow_to_leave(interrupt: Callable[[], None], closed: list[str]) -> Iterator[None]:
    """A block that is interrupted twice while it is left."""
    try:
        yield
    finally:
        interrupt()
        closed.append("first step")
        interrupt()
        closed.append("second step")


@pytest.mark.usefixtures("interrupts_raise")
def test_a_second_interrupt_does_not_wait_until_a_block_is_left() -> None:
    closed: list[str] = []
    with pytest.raises(KeyboardInterrupt), slow_to_leave(lambda: signal.raise_signal(signal.SIGINT), closed):
        closed.append("block")
    assert closed == ["block", "first step"] and sys.getprofile() is None
