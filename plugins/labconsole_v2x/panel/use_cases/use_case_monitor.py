"""Follows the runs of use cases: results as they come, then the verdicts of the newest run in the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError
from PySide6.QtCore import QObject, Signal

from labconsole.engine.protocol import LiveFrame
from labconsole.engine.queue import QueueState
from labconsole.model.trial import Verdict
from labconsole.store.reader import Reader
from labconsole.store.records import RunRow, RunStatus
from labconsole_ui.panels.trial_panel import PanelContext
from labconsole_ui.runtime.background import Background
from labconsole_ui.widgets.message_bar import Message, Tone
from labconsole_v2x.use_cases.catalogue import CODES, USE_CASES
from labconsole_v2x.use_cases.judging import FAILED, NOT_TESTED, PASSED, RESULT_WORDS
from labconsole_v2x.use_cases.use_case_parameters import UseCaseParameters
from labconsole_v2x.use_cases.use_case_role import RESULTS_CHANNEL, RUNNING

WAITING = "waiting"
PASSED_WORD, FAILED_WORD, NOT_TESTED_WORD = (RESULT_WORDS[result] for result in (PASSED, FAILED, NOT_TESTED))
_NEWEST = 20
"""So many runs are searched for one with verdicts: a run that did not begin has none."""


class CaseResult(NamedTuple):
    """The result of a case as a word, and what decided it (empty while the run is in progress)."""

    word: str
    reason: str = ""


@dataclass(frozen=True)
class RunResults:
    """The results of a run by code; without a run there are none."""

    run_id: int | None = None
    parameters: UseCaseParameters | None = None
    running: bool = False
    results: Mapping[str, CaseResult] = field(default_factory=dict)

    def count(self, word: str, codes: Sequence[str]) -> int:
        """How many of these codes have the result."""
        return sum(code in self.results and self.results[code].word == word for code in codes)

    @property
    def failed(self) -> tuple[str, ...]:
        """The codes that failed, in their order."""
        return tuple(code for code in CODES if code in self.results and self.results[code].word == FAILED_WORD)


class UseCaseMonitor(QObject):
    """`changed` carries the `RunResults` to be shown."""

    changed = Signal(object)

    def __init__(self, context: PanelContext, parent: QObject) -> None:
        super().__init__(parent)
        self._context = context
        self._background = Background(self)
        self._live: Mapping[str, str] = {}
        self.shown = RunResults()
        context.bridge.live.connect(self._take)
        context.bridge.finished.connect(self._finished)

    def read_newest(self) -> None:
        """Read the verdicts of the newest run in the background, unless a run is in progress."""
        if not self.shown.running:
            path, kind = self._context.bridge.queue.store.path, self._context.trial.kind
            self._background.submit(partial(newest_results, path, kind), self._set_stored, self._say)

    def _take(self, run_id: int, frame: LiveFrame) -> None:
        if not self.shown.running or run_id != self.shown.run_id:
            items = [item for item in self._context.bridge.queue.items if item.run_id == run_id]
            if not items or items[0].kind != self._context.trial.kind or items[0].state is not QueueState.RUNNING:
                return
            self.shown, self._live = RunResults(run_id, None, running=True), {}
            path = self._context.bridge.queue.store.path
            self._background.submit(partial(_parameters_of, path, run_id), self._set_parameters, self._say)
        for role in frame.by_role.states.get(RESULTS_CHANNEL.name, {}):
            self._live = frame.by_role.state(RESULTS_CHANNEL.name, role)
        self._show_live(self.shown.parameters)

    def _set_parameters(self, found: tuple[int, UseCaseParameters | None]) -> None:
        run_id, parameters = found
        if self.shown.running and run_id == self.shown.run_id:
            self._show_live(parameters)

    def _show_live(self, parameters: UseCaseParameters | None) -> None:
        selected = CODES if parameters is None else parameters.selected
        results = {
            code: CaseResult(self._live.get(code, WAITING if code in selected else NOT_TESTED_WORD)) for code in CODES
        }
        self._show(RunResults(self.shown.run_id, parameters, running=True, results=results))

    def _finished(self, run_id: int, _status: RunStatus) -> None:
        if run_id == self.shown.run_id and self.shown.running:
            over = {code: found for code, found in self.shown.results.items() if found.word not in (WAITING, RUNNING)}
            self._show(RunResults(run_id, self.shown.parameters, results=over))
        items = self._context.bridge.queue.items
        if any(item.run_id == run_id and item.kind == self._context.trial.kind for item in items):
            self.read_newest()

    def _set_stored(self, found: RunResults) -> None:
        if not self.shown.running and found.run_id is not None:
            self._show(found)

    def _show(self, results: RunResults) -> None:
        if results != self.shown:
            self.shown = results
            self.changed.emit(results)

    def _say(self, sentence: str) -> None:
        self._context.show_message(Message(Tone.BAD, sentence))


def newest_results(database: Path, kind: str) -> RunResults:
    """The verdicts of the newest run of use cases that has any. Raises StoreError."""
    with Reader(database) as reader:
        for row in reader.runs(kind=kind, metrics=(), limit=_NEWEST):
            verdicts = reader.verdicts([row.id])[row.id] if row.status.final else ()
            results = {verdict.name: _result(verdict) for verdict in verdicts if verdict.name in CODES}
            if results:
                return RunResults(row.id, _parameters(row), results=results)
    return RunResults()


def _result(verdict: Verdict) -> CaseResult:
    """Without the title, which the list and the details have."""
    reason = verdict.reason.removeprefix(f"{USE_CASES[verdict.name].title}. ")
    return CaseResult(RESULT_WORDS.get(verdict.result, verdict.result), reason)


def _parameters_of(database: Path, run_id: int) -> tuple[int, UseCaseParameters | None]:
    with Reader(database) as reader:
        return run_id, _parameters(reader.run(run_id).row)


def _parameters(row: RunRow) -> UseCaseParameters | None:
    """The parameters of a run; None of one from a console that had other cases."""
    try:
        return UseCaseParameters.of_stored(row.parameters)
    except ValidationError:
        return None
