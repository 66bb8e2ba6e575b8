"""A cell of the planner's table: a figure with how it was found, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from labconsole.model.trial import Origin


@dataclass(frozen=True)
class Cell:
    """`note` says how the figure was found; where `value` is None, why there is none. `origin` is that of a run's."""

    value: float | None
    note: str
    origin: Origin | None = None
