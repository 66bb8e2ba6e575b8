"""Drives a real run queue with the practice trial, and keeps what it reports."""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from labconsole.engine.protocol import LiveFrame
from labconsole.engine.queue import RunQueue
from labconsole.model.plugin import Plugins
from labconsole.model.series import Event
from labconsole.profiles.profile import campaign_of, load_profile
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, RunDetail, RunStatus
from tests.helpers.worker_threads import QueueInThreads

PLUGIN = Path(__file__).parent / "practice_plugin"
KIND = "practice.counting"
STATIONS = "practice.stations"
TIMEOUT_S = 120.0
"""How long a test waits without any news: for a state, which a busy machine reaches late."""


@contextmanager
def practice_plugin_on_path() -> Iterator[None]:
    """The practice plugin is found in the block as any third party's is, by this process and those that it starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PLUGIN))
        patch.setenv("PYTHONPATH", str(PLUGIN), prepend=os.pathsep)
        importlib.invalidate_caches()
        yield
    for module in [name for name in sys.modules if name.startswith("practice_")]:
        del sys.modules[module]


class RecordingListener:
    """A listener that records the calls of the queue."""

    def __init__(self) -> None:
        self.changes = 0
        self.frames: list[tuple[int, LiveFrame]] = []
        self.events: list[tuple[int, Event]] = []
        self.lines: list[str] = []
        self.ends: list[tuple[int, RunStatus]] = []

    @property
    def news(self) -> tuple[int, ...]:
        """Changes with each report."""
        return self.changes, len(self.frames), len(self.events), len(self.lines), len(self.ends)

    def items_changed(self) -> None:
        self.changes += 1

    def live(self, run_id: int, frame: LiveFrame) -> None:
        self.frames.append((run_id, frame))

    def event(self, run_id: int, event: Event) -> None:
        self.events.append((run_id, event))

    def log(self, run_id: int, line: str) -> None:
        self.lines.append(line)

    def finished(self, run_id: int, status: RunStatus) -> None:
        self.ends.append((run_id, status))


def profile_text(*scenarios: Mapping[str, Any], kind: str = KIND, **parameters: Any) -> str:
    """A profile of a practice trial: common parameters, and one scenario for each mapping."""
    lines = ["format = 1", f'kind = "{kind}"', "[parameters]"]
    lines += [f"{key} = {_toml(value)}" for key, value in parameters.items()]
    for number, scenario in enumerate(scenarios, 1):
        inline = ", ".join(f"{key} = {_toml(value)}" for key, value in scenario.items())
        lines += ["[[scenarios]]", f'name = "scenario {number}"', f"parameters = {{ {inline} }}"]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def campaign(
    folder: Path, *scenarios: Mapping[str, Any], repeats: int = 1, name: str = "practice", **parameters: Any
) -> NewCampaign:
    """A campaign of a practice trial (`kind`), from a profile written into `folder`."""
    path = folder / f"{name}.toml"
    path.write_text(profile_text(*scenarios, **parameters))
    return campaign_of(load_profile(str(path), Plugins.discover(), repeats=repeats))


class Bench:
    """A queue on a database of its own, pumped as a window would do it; `in_threads`: without processes."""

    def __init__(self, folder: Path, *, in_threads: bool = False, **options: Any) -> None:
        self.folder = folder
        self.database = folder / "runs.db"
        self._woken = threading.Event()
        queue = QueueInThreads if in_threads else RunQueue
        self.queue = queue(self.database, wake=self._woken.set, **options)
        self.listener = RecordingListener()
        self.queue.listeners.append(self.listener)
        self.slowest_pump_s = 0.0
        """CPU time of the slowest one: how long it waits for a busy machine says nothing about it."""

    def submit(self, *scenarios: Mapping[str, Any], repeats: int = 1, **parameters: Any) -> list[int]:
        """Put a campaign into the queue."""
        return self.queue.submit(campaign(self.folder, *scenarios, repeats=repeats, **parameters))

    def pump_until(self, condition: Callable[[], bool]) -> None:
        """Pump until `condition` holds; fails after `TIMEOUT_S` without any news."""
        news, deadline = self.listener.news, time.monotonic() + TIMEOUT_S
        while not condition():
            if self.listener.news != news:
                news, deadline = self.listener.news, time.monotonic() + TIMEOUT_S
            assert time.monotonic() < deadline, f"no news for {TIMEOUT_S} s: {self.queue.items} {self.listener.lines}"
            begun = time.thread_time()
            self.queue.pump()
            self.slowest_pump_s = max(self.slowest_pump_s, time.thread_time() - begun)
            self._woken.wait(0.02)
            self._woken.clear()

    def pump_until_idle(self) -> None:
        """Pump until nothing runs or waits."""
        self.pump_until(lambda: not self.queue.busy)

    def run(self, *scenarios: Mapping[str, Any], **parameters: Any) -> list[RunDetail]:
        """Submit a campaign, pump until it is done, and return its runs."""
        run_ids = self.submit(*scenarios, **parameters)
        self.pump_until_idle()
        return [self.detail(run_id) for run_id in run_ids]

    def pump_until_counting(self, least: int = 1) -> None:
        """Pump until the run in progress has counted at least so many numbers."""
        seen = len(self.listener.frames)
        self.pump_until(lambda: any(frame.done >= least for _, frame in self.listener.frames[seen:]))

    def detail(self, run_id: int) -> RunDetail:
        """Everything of a run but its samples."""
        with Reader(self.database) as reader:
            return reader.run(run_id)

    def numbers(self, run_id: int, role: str = "counter-0") -> list[int]:
        """The numbers that a role has recorded, verified while they are read."""
        with Reader(self.database) as reader:
            samples = reader.samples(run_id)
            return samples.table("counted", role)["number"].tolist() if role in samples.roles("counted") else []

    def close(self) -> None:
        """Close the queue."""
        self.queue.close()


def processes(detail: RunDetail) -> dict[str, int]:
    """Pids of the processes in the events of a run, by source or message."""
    return {event.message: event.data["pid"] for event in detail.events if event.name == "process"}


def environment(*folders: Path) -> dict[str, str]:
    """This process's environment, with these folders first on the path of Python."""
    path = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return {**os.environ, "PYTHONPATH": path}


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(condition: Callable[[], bool], patience_s: float = 10.0) -> bool:
    """Whether `condition` came to hold within `patience_s`."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
