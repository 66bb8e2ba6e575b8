"""How the suite is spread over test processes: how many, stealing of work, long tests first, serial ones last."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import psutil
import pytest
from _pytest.pathlib import ImportMode, import_path
from xdist.scheduler.worksteal import MIN_PENDING, WorkStealingScheduling
from xdist.workermanage import WorkerController

PROCESSES_PER_CORE = 2
"""Tests wait for half of their time and more (each run prints the share): with two test processes a core the suite took
0.72 of the time that it took with one."""
PROCESS_BYTES = 1_000_000_000
"""Memory for a test process and its children."""
NIGHTLY_LIMIT_S = 1800
"""For a nightly test that names no limit of its own: it may build kryoptic, or download a broker."""
ENDS_LAST = "ends-last"
"""In the folder that all processes of a test run have in common: the name of the test process that waits for all others
when it ends, as they use what it has started. It gets the serial tests, which would wait for its end otherwise."""
_MARKED = "marked-tests.json"


def pytest_xdist_auto_num_workers() -> int:
    """The number of test processes, by the cores that this process may use and the memory that is free."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(PROCESSES_PER_CORE * cores, psutil.virtual_memory().available // PROCESS_BYTES))


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Begin with another part of the modules in each test process.

    Each module is so compiled by one of them, and read by the others, instead of by all at the same time: in a fresh
    clone that takes 40 s of CPU. Nothing that collection creates is garbage, so none is looked for.
    """
    gc.disable()
    config = session.config
    worker = getattr(config, "workerinput", None)
    if worker is None or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    modules = sorted((config.rootpath / "tests").rglob("test_*.py"))
    for path in modules[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        try:
            import_path(path, mode=ImportMode.importlib, root=config.rootpath, consider_namespace_packages=False)
        except (Exception, pytest.skip.Exception):  # noqa: BLE001 - collection imports it again, after its conftest
            for name in [name for name, module in sys.modules.items() if _file(module) == str(path)]:
                del sys.modules[name]  # pytest leaves what it has imported in part


def _file(module: ModuleType) -> str | None:
    return module.__dict__.get("__file__")


def pytest_collection_finish() -> None:
    """Look for garbage again, but not in what was collected."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the names of serial and of long tests where the process that schedules finds them: it knows no marks.

    Nightly tests get time.
    """
    longer = {item.nodeid for item in items if (limit_s := _limit_s(item)) == 0 or limit_s > NIGHTLY_LIMIT_S}
    for item in items:
        if item.get_closest_marker("nightly") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(NIGHTLY_LIMIT_S))
    if hasattr(config, "workerinput"):
        marked = {
            "serial": [item.nodeid for item in items if item.get_closest_marker("serial")],
            "long": [item.nodeid for item in items if item.nodeid in longer and not item.get_closest_marker("serial")],
        }
        _base(config).with_name(_MARKED).write_text(json.dumps(marked), encoding="utf-8")


def _limit_s(item: pytest.Item) -> float:
    """The limit that a test names itself, 0 for none at all; a second where it leaves that to the suite."""
    mark = item.get_closest_marker("timeout")
    return 1.0 if mark is None else float(mark.args[0])


def _base(config: pytest.Config) -> Path:
    """The folder of temporary files of this process; xdist puts those of its workers into that of the first one."""
    base: Path = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # before fixtures no public way
    return base


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config) -> WorkStealingScheduling | None:
    """Work stealing that runs serial tests last; any other way that the command line asks for stays as it is."""
    return OrderedStealing(config) if config.getvalue("dist") == "worksteal" else None


class OrderedStealing(WorkStealingScheduling):
    """Work stealing; tests marked `serial` are run last, in one process, after all others have ended.

    Those that name a limit of more than `NIGHTLY_LIMIT_S` are run first, each in another process.
    """

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(config)
        self._serial: list[int] | None = None
        """Those that are held back; None: not known yet."""

    @property
    def tests_finished(self) -> bool:
        """Whether each test has been sent to a process that will run it."""
        return not self._serial and super().tests_finished

    @property
    def has_pending(self) -> bool:
        """Whether tests are left."""
        return bool(self._serial) or super().has_pending

    def check_schedule(self) -> None:
        """Spread tests over idle processes; send the serial ones once a single process is left."""
        working = [node for node in self.node2pending if not node.shutting_down]
        if self._serial is None and self.collection is not None:
            marked = json.loads((_base(self.config) / _MARKED).read_text(encoding="utf-8"))
            by_name = {name: index for index, name in enumerate(self.collection)}
            self._serial, longer = ([by_name[name] for name in marked[kind]] for kind in ("serial", "long"))
            others = sorted(set(self.pending) - {*self._serial, *longer})
            # Each process gets an equal part, in this order.
            parts = [longer[number :: len(working)] for number in range(len(working))]
            each = -(-len(others) // len(working))
            self.pending[:] = [
                index
                for number, first in enumerate(parts)
                for index in (*first, *others[number * each : (number + 1) * each])
            ]
        # A process runs its last test only when another one follows, or when it is asked to end.
        idle = all(len(self.node2pending[node]) < MIN_PENDING for node in working)
        if not (working and self._serial and idle) or self.pending or self.steal_requested_from_node:
            with _not_asked_to_end(self._ends_last if self._serial else None):
                super().check_schedule()
            return
        kept = self._ends_last or working[0]
        for node in working:
            if node is not kept:
                node.shutdown()
        if len(self.node2pending) == 1:
            self.pending, self._serial = self._serial, []
            super().check_schedule()

    @property
    def _ends_last(self) -> WorkerController | None:
        """The process that others are not to outlast, if there is one and it has not been asked to end."""
        last = _base(self.config) / "shared" / ENDS_LAST
        name = last.read_text(encoding="utf-8") if last.exists() else ""
        return next((node for node in self.node2pending if node.gateway.id == name and not node.shutting_down), None)


@contextmanager
def _not_asked_to_end(node: WorkerController | None) -> Iterator[None]:
    """In the block, `node` stays though it has nothing to do."""
    if node is None:
        yield
        return
    vars(node)["shutdown"] = lambda: None
    try:
        yield
    finally:
        del vars(node)["shutdown"]
