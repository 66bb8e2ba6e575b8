"""The cost of the suite: seconds, CPU time and process starts by file, printed at the end; too many starts fail it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pytest

CI_SET = "not nightly"
MOST_STARTS = 600
"""Processes that the set of CI may start (454 on 2026-11-30; forked ones do not count): one costs 0.2 s of CPU."""
_SHOWN_FILES = 20
_COUNTER = Path(__file__).parent / "counted_starts"
"""On PYTHONPATH, so that every Python process counts itself."""


@dataclass
class Cost:
    """The cost of tests: seconds, CPU seconds of their process and of children that ended, process starts, tests."""

    seconds: float = 0.0
    cpu_s: float = 0.0
    starts: float = 0
    tests: float = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(mine + its for mine, its in zip(vars(self).values(), vars(other).values(), strict=True)))

    def __sub__(self, other: Cost) -> Cost:
        return Cost(*(mine - its for mine, its in zip(vars(self).values(), vars(other).values(), strict=True)))


class SuiteCost:
    """Measures each test in the process that runs it, and adds up in the process that reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._counts: Path | None = None
        self._costs: dict[str, Cost] = {}
        self._began = time.monotonic()
        self._before = Cost()

    def count_starts(self, counts: Path) -> None:
        """Count in this file the programs that this process starts, and each Python process that those start."""
        counts.touch()
        self._counts = counts
        os.environ["SUITE_STARTS"] = str(counts)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_COUNTER), os.environ.get("PYTHONPATH"))))
        _call_before_programs(partial(_count_program, counts))

    @property
    def _now(self) -> Cost:
        starts = 0 if self._counts is None else self._counts.stat().st_size
        return Cost(time.monotonic(), sum(os.times()[:4]), starts)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        """Begin to measure a test, before its fixtures."""
        self._before = self._now
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[pytest.TestReport]:
        """Put what the test took, its fixtures included, into its last report, which xdist sends on."""
        report: pytest.TestReport = yield  # type: ignore[assignment]  # pytest types wrappers as returning nothing
        if call.when == "teardown":
            report.cost = list(vars(self._now - self._before + Cost(tests=1)).values())
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the cost of a test in the process that reports."""
        if (cost := getattr(report, "cost", None)) is not None:
            self._costs[report.nodeid] = Cost(*cost)

    @property
    def _total(self) -> Cost:
        return sum(self._costs.values(), Cost())

    @property
    def _excess(self) -> bool:
        """Whether the set of CI has started too many processes."""
        return self._config.getoption("markexpr") == CI_SET and self._total.starts > MOST_STARTS

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that starts more processes than the suite may."""
        if not _in_worker() and self._excess and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the files that took the most CPU, and the whole; all tests, as JSON, where SUITE_COSTS names a file."""
        if path := os.environ.get("SUITE_COSTS"):
            Path(path).write_text(json.dumps({name: vars(cost) for name, cost in self._costs.items()}, indent=0))
        files: defaultdict[str, Cost] = defaultdict(Cost)
        for name, cost in self._costs.items():
            files[name.partition("::")[0]] += cost
        if sum(cost.tests for cost in files.values()) < 2:
            return
        total, real_s = self._total, time.monotonic() - self._began
        terminalreporter.section(f"cost: the {_SHOWN_FILES} files that took the most CPU time")
        for name, cost in sorted(files.items(), key=lambda item: -item[1].cpu_s)[:_SHOWN_FILES]:
            terminalreporter.write_line(
                f"{cost.cpu_s:6.1f} s CPU {cost.seconds:6.1f} s {cost.starts:5.0f} process starts  {name}"
            )
        terminalreporter.write_line(
            f"{total.cpu_s:6.0f} s CPU {total.seconds:6.0f} s {total.starts:5.0f} process starts "
            f"in {real_s:.0f} s; {total.cpu_s / max(total.seconds, 0.001):.0%} of the tests' time is CPU time"
        )
        if self._excess:
            terminalreporter.write_line(f"More than {MOST_STARTS} process starts: share a recorded run.", red=True)


def _call_before_programs(call: Callable[[Any], None]) -> None:
    """Have `call` called with the command of each program that this process starts.

    An audit hook of Python is called with its hundreds of other events a test, too.
    """
    start = subprocess.Popen._execute_child  # type: ignore[attr-defined]

    @wraps(start)
    def counted_start(process: Any, command: Any, *arguments: Any) -> None:
        call(command)
        start(process, command, *arguments)

    subprocess.Popen._execute_child = counted_start  # type: ignore[attr-defined]


def _count_program(counts: Path, command: Any) -> None:
    """Count a program that is not Python, whose processes count themselves."""
    program = command if isinstance(command, str | bytes | os.PathLike) else command[0]
    if "python" not in Path(os.fsdecode(program)).name:
        with counts.open("ab") as file:
            file.write(b".")


def _in_worker() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ


def pytest_configure(config: pytest.Config) -> None:
    """Measure every test."""
    config.pluginmanager.register(SuiteCost(config), "suite-cost")


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Count from the start of a process that runs tests."""
    cost: SuiteCost = session.config.pluginmanager.get_plugin("suite-cost")
    factory = session.config._tmp_path_factory  # type: ignore[attr-defined]  # before fixtures there is no public way
    cost.count_starts(factory.getbasetemp() / "process-starts")
