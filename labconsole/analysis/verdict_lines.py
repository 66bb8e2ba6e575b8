"""Verdicts as lines: of a comparison, counted over repeats and next to published ones, and of a run's preflight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from labconsole.analysis.columns import Column, RunGroup, counterpart
from labconsole.analysis.number_format import NO_FIGURE
from labconsole.analysis.published_figures import PublishedColumn
from labconsole.model.metrics import Verdict, VerdictKind

Verdicts = Mapping[int, Sequence[Verdict]]
"""Verdicts of runs, by the run's id."""


@dataclass(frozen=True)
class VerdictCell:
    """A verdict in one column.

    `result` is `"fail"` where one of `runs` runs failed, `"pass"` where all passed, `"unknown"` otherwise; of a
    preflight check it may be `"warning"` or `"not applicable"`, of a published column (0 runs) `"not tested"`. Where
    the column has no such verdict, it is empty.
    `reason` is that of the first run that did not pass, or of the only run.
    """

    result: str = ""
    text: str = NO_FIGURE
    """`pass`, `4 of 5 pass, 1 of 5 fail`; of a published one the word of the source, `passed`."""
    runs: int = 0
    reason: str = ""
    reference: str = ""
    agrees: bool | None = None
    """Of a published pass or fail: whether it is the result of all runs of the same scenario; None without any."""


@dataclass(frozen=True)
class VerdictLine:
    """A verdict in all columns."""

    name: str
    cells: tuple[VerdictCell, ...]
    kind: VerdictKind = VerdictKind.FINDING

    @property
    def passed(self) -> bool:
        """Whether it passed in every run of every column that has it, and no source has it."""
        return all(cell.result in ("", "pass", "not applicable") and not cell.reference for cell in self.cells)


def verdict_lines(columns: Sequence[Column], verdicts: Verdicts) -> tuple[VerdictLine, ...]:
    """A line for each verdict of the columns, in the order of the runs' own; those that are only published last."""
    own = [_of_runs(column, verdicts) if isinstance(column, RunGroup) else {} for column in columns]
    theirs = [column.verdicts if isinstance(column, PublishedColumn) else {} for column in columns]
    names = dict.fromkeys(name for found in (*own, *theirs) for name in found)
    kinds = {name: one[0].kind for found in own for name, one in found.items()}
    return tuple(
        VerdictLine(name, tuple(_cells(columns, own, name)), kinds.get(name, VerdictKind.FINDING)) for name in names
    )


def preflight_folded(lines: Sequence[VerdictLine]) -> tuple[VerdictLine, ...]:
    """The lines with those of preflight checks that passed everywhere as one."""
    passed = [line for line in lines if line.kind is VerdictKind.PREFLIGHT and line.passed]
    if not passed:
        return tuple(lines)
    cells = tuple(
        next((cell for cell in of_column if cell.result == "pass"), of_column[0])
        for of_column in zip(*(line.cells for line in passed), strict=True)
    )
    one = VerdictLine(f"preflight: {len(passed)} checks", cells, VerdictKind.PREFLIGHT)
    return (one, *(line for line in lines if line not in passed))


def result_text(results: Sequence[str]) -> str:
    """`pass` of one run, `1 of 5 fail, 4 of 5 pass` of several: in the order in which they are first met."""
    if len(results) == 1:
        return results[0]
    return ", ".join(f"{count} of {len(results)} {result}" for result, count in Counter(results).items())


def _of_runs(group: RunGroup, verdicts: Verdicts) -> dict[str, list[Verdict]]:
    found: dict[str, list[Verdict]] = {}
    for run in group.used:
        for verdict in verdicts.get(run.id, ()):
            found.setdefault(verdict.name, []).append(verdict)
    return found


def _cells(
    columns: Sequence[Column], own: Sequence[Mapping[str, Sequence[Verdict]]], name: str
) -> Iterator[VerdictCell]:
    for index, (column, found) in enumerate(zip(columns, own, strict=True)):
        if isinstance(column, RunGroup):
            yield _own_cell(found.get(name, ()))
            continue
        ours = counterpart(columns, index)
        measured = () if ours is None else own[ours].get(name, ())
        yield _published_cell(column, name, {verdict.result for verdict in measured})


def _own_cell(verdicts: Sequence[Verdict]) -> VerdictCell:
    if not verdicts:
        return VerdictCell()
    results = [verdict.result for verdict in verdicts]
    others = sorted((verdict for verdict in verdicts if verdict.result != "pass"), key=lambda one: one.result)
    shown = verdicts if len(verdicts) == 1 else others
    return VerdictCell(_together(set(results)), result_text(results), len(results), shown[0].reason if shown else "")


def _published_cell(column: PublishedColumn, name: str, measured: set[str]) -> VerdictCell:
    verdict = column.verdicts.get(name)
    if verdict is None:
        return VerdictCell()
    comparable = verdict.result in ("pass", "fail") and measured
    agrees = measured == {verdict.result} if comparable else None
    return VerdictCell(verdict.result, verdict.printed, reference=verdict.reference, agrees=agrees)


def _together(results: set[str]) -> str:
    judged = results - {"not applicable"}
    if not judged:
        return "not applicable"
    worst = ("fail", "unknown", "warning", "pass")
    return next((result for result in worst if result in judged), "unknown")


PREFLIGHT = "preflight"
"""The name of the line for all checks."""
_WORST_FIRST = ("fail", "warning", "unknown", "pass")
_COUNTED = {
    "fail": "failed",
    "warning": "with a warning",
    "unknown": "not known",
    "pass": "passed",
    "not applicable": "not applicable",
}


@dataclass(frozen=True)
class PreflightLines:
    """The verdicts of a run: those of its preflight, and the `others`.

    `summary` counts the checks, None without any. `open` are those that need attention, `folded` those that passed or
    do not apply.
    """

    summary: Verdict | None
    open: tuple[Verdict, ...]
    folded: tuple[Verdict, ...]
    others: tuple[Verdict, ...]


def preflight_lines(verdicts: Sequence[Verdict]) -> PreflightLines:
    """The verdicts of a run, with its preflight checks apart from the others."""
    checks = [one for one in verdicts if one.kind is VerdictKind.PREFLIGHT]
    others = tuple(one for one in verdicts if one.kind is not VerdictKind.PREFLIGHT)
    folded = tuple(one for one in checks if one.result in ("pass", "not applicable"))
    return PreflightLines(
        _summary(checks) if checks else None, tuple(one for one in checks if one not in folded), folded, others
    )


def _summary(checks: Sequence[Verdict]) -> Verdict:
    counts = Counter(one.result for one in checks)
    counted = ", ".join(f"{counts[result]} {words}" for result, words in _COUNTED.items() if counts[result])
    worst = next((result for result in _WORST_FIRST if counts[result]), "pass")
    return Verdict(PREFLIGHT, worst, f"{len(checks)} checks: {counted}.", kind=VerdictKind.PREFLIGHT)
