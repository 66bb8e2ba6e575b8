"""Which columns of a comparison make a fair pair for a finding, as their trial says it, and in its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from labconsole.analysis.columns import Column, RunGroup
from labconsole.model.parameters import Parameters
from labconsole.model.trial import Trial


@dataclass(frozen=True)
class Pair:
    """Indices of two columns, and what sets `other` apart from `reference` ("TLS against plain")."""

    reference: int
    other: int
    title: str


def contrasts(columns: Sequence[Column], baseline: int, trial: Trial[Any] | None) -> tuple[Pair, ...]:
    """At most two pairs for each measured column: against where the steps begin (the baseline, if that is a fair one),
    and against the step just below. A column with which the trial makes no pair is compared with the baseline, unless
    the trial says that the two cannot be compared. Columns on different hosts are no pair of the trial's."""
    models = [parameters_of(column, trial) for column in columns]
    words = {
        (reference, other): said
        for reference, one in enumerate(models)
        for other, two in enumerate(models)
        if trial is not None and one is not None and two is not None and reference != other
        if _hosts(columns[reference]) == _hosts(columns[other])
        if (said := trial.contrast(one, two))
    }
    below = [[reference for reference, other in words if other == index] for index in range(len(columns))]
    pairs: dict[frozenset[int], Pair] = {}
    for other in sorted(range(len(columns)), key=lambda index: index == baseline):
        for reference in _references(columns, below, other, baseline):
            # A trial that knows no order of two columns names them both ways round: the baseline is the reference.
            pairs.setdefault(frozenset((reference, other)), Pair(reference, other, words[reference, other]))
    paired = {index for pair in pairs.values() for index in (pair.reference, pair.other)}
    base = columns[baseline].title
    excluded = {baseline, *paired, *apart(columns, baseline, trial)}
    for other, column in enumerate(columns):
        if isinstance(column, RunGroup) and other not in excluded:
            pair = Pair(baseline, other, f"{column.title} against {base}")
            pairs.setdefault(frozenset((baseline, other)), pair)
    return tuple(sorted(pairs.values(), key=lambda pair: pair.other))


def apart(columns: Sequence[Column], baseline: int, trial: Trial[Any] | None) -> frozenset[int]:
    """Indices of the columns that cannot be compared with the baseline, as the trial says: what each was asked to do
    differs. Parameters that the trial does not know do not matter."""
    reference = parameters_of(columns[baseline], trial)
    if trial is None or reference is None:
        return frozenset()
    models = enumerate(parameters_of(column, trial) for column in columns)
    return frozenset(index for index, model in models if model is not None and not trial.comparable(reference, model))


def _references(
    columns: Sequence[Column], below: Sequence[Sequence[int]], other: int, baseline: int
) -> tuple[int, ...]:
    """The step at which the columns below `other` begin, and the last one before it; its own campaign's first."""
    if not below[other]:
        return ()

    def rank(index: int) -> tuple[bool, int, int]:
        return (_campaign(columns[index]) == _campaign(columns[other]), len(below[index]), -index)

    first = min(below[other], key=lambda index: (not rank(index)[0], len(below[index]), index))
    if baseline in below[other]:
        first = baseline
    last = max(below[other], key=rank)
    return (first,) if first == last else (first, last)


def _campaign(column: Column) -> int | None:
    return column.runs[0].campaign_id if isinstance(column, RunGroup) else None


def _hosts(column: Column) -> str:
    return column.hosts if isinstance(column, RunGroup) else ""


def parameters_of(column: Column, trial: Trial[Any] | None) -> Parameters | None:
    """The parameters of a measured column as the trial's model; None where they are of another trial or version."""
    if trial is None or not isinstance(column, RunGroup) or column.kind != trial.kind:
        return None
    try:
        return trial.parameters.of_stored(column.parameters)
    except ValidationError:
        return None
