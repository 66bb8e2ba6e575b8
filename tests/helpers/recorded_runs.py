"""Real runs that tests share: each is conducted once per test run, and read from its files where a test asks for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.parallel import run_parallel
from tests.helpers.shared_once import shared_once
from tests.helpers.trial_lab import R, TrialLab


class RecordedRuns(Mapping[str, R]):
    """The outcomes of runs by name."""

    def __init__(self, folders: Mapping[str, Path], lab: type[TrialLab[Any, R]]) -> None:
        self._folders = folders
        self._lab = lab
        self._outcomes: dict[str, R] = {}

    def __getitem__(self, name: str) -> R:
        """The outcome of a run: its spools and its evaluation, read once in each process."""
        if name not in self._outcomes:
            self._outcomes[name] = self._lab.read(self._folders[name])
        return self._outcomes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._folders)

    def __len__(self) -> int:
        return len(self._folders)


def record_runs(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    lab: type[TrialLab[Any, R]],
    cases: Collection[str],
    run: Callable[[Path, str], R],
    lanes: int = 2,
) -> RecordedRuns[R]:
    """Call `run` with a new folder for each of `cases`, `lanes` at a time: once per test run, not in each process.

    `name` is the folder of all of them; `lab` reads their outcomes. More than two runs in threads
    delay each other; processes bear more lanes. Raises what a call has raised.
    """
    parts = {case: f"run-{number}" for number, case in enumerate(cases)}

    def conduct(folder: Path) -> None:
        for outcome in run_parallel(cases, lambda case: run(folder / parts[case], case), lanes).values():
            outcome.result().write()

    folder = shared_once(tmp_path_factory, name, conduct)
    return RecordedRuns({case: folder / part for case, part in parts.items()}, lab)
