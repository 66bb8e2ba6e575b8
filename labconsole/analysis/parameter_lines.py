"""Parameters of a comparison: those of all columns as text, and which of them differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labconsole.analysis.columns import Column, RunGroup
from labconsole.analysis.number_format import NO_FIGURE
from labconsole.analysis.parameter_texts import ParameterValue, describe_hosts, describe_parameters
from labconsole.model.trial import Trial


@dataclass(frozen=True)
class ParameterLine:
    """A parameter in all columns, as text; `differs` is whether the columns that have it have different values (a
    published column has only those that the publication states, any run has all), `foreign` whether a trial of the
    runs has no such parameter."""

    name: str
    title: str
    unit: str
    texts: tuple[str, ...]
    differs: bool
    foreign: bool = False


def parameter_lines(
    columns: Sequence[Column], trial: Trial[Any] | None, further: Mapping[str, Trial[Any]]
) -> tuple[ParameterLine, ...]:
    """Parameters of all columns, those of other trials too as `trial` describes them: a value is written in one way.

    Those that it does not know are as their own trial describes them. Where a scenario asks for hosts, they are a line.
    """
    described = [_described(column, trial, further.get(column.kind)) for column in columns]
    if any(isinstance(column, RunGroup) and column.hosts for column in columns):
        for column, values in zip(columns, described, strict=True):
            if isinstance(column, RunGroup):
                values["hosts"] = describe_hosts(column.hosts)
    runs = [
        (column.kind, values) for column, values in zip(columns, described, strict=True) if isinstance(column, RunGroup)
    ]
    kinds = {kind for kind, _ in runs}
    lines = []
    for name in dict.fromkeys(name for values in described for name in values):
        example = next(values[name] for values in described if name in values)
        texts = tuple(values[name].text if name in values else NO_FIGURE for values in described)
        compared = {
            text
            for column, values, text in zip(columns, described, texts, strict=True)
            if name in values or isinstance(column, RunGroup)
        }
        known = {kind for kind, values in runs if name in values}
        lines.append(
            ParameterLine(name, example.title, example.unit, texts, len(compared) > 1, bool(known) and known != kinds)
        )
    return tuple(lines)


def _described(column: Column, trial: Trial[Any] | None, own: Trial[Any] | None) -> dict[str, ParameterValue]:
    parameters = column.parameters if isinstance(column, RunGroup) else {**column.known, **column.parameters}
    model = trial.parameters if trial is not None else None
    values = {value.name: value for value in describe_parameters(parameters, model)}
    if own is not None:
        fields = model.model_fields if model is not None else {}
        foreign = {name: value for name, value in parameters.items() if name not in fields}
        values |= {value.name: value for value in describe_parameters(foreign, own.parameters)}
    return values
