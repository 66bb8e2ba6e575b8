"""Whether latencies were measured at an equal offered rate that is low enough: else they are not judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from labconsole.analysis.columns import Column, RunGroup
from labconsole.analysis.number_format import format_figure
from labconsole.model.trial import FULL_SPEED, OFFERED_RATE
from labconsole.store.records import RunRow

LARGEST_SHARE: Final = 0.25
"""Offered rate over full speed: at half of it, queues were already growing."""


def too_high(offered: float, full_speed: float | None, unit: str) -> str:
    """Why the rate is too high for a full speed, in a few words; empty where it is not, or that is not known."""
    if full_speed is None or offered <= LARGEST_SHARE * full_speed:
        return ""
    return f"{format_figure(offered, unit)} is over a quarter of full speed ({format_figure(full_speed, unit)})"


def too_high_in_round(run: RunRow, columns: Sequence[Column]) -> str:
    """Why the rate that `run` was offered is too high for the slowest run of its round, offered the same; or empty.

    A round are the runs of one campaign with the same number of repeat. Of a column that has none in the round (it was
    repeated, say), all count. A full speed that is not judged says nothing of the rate: that of an open loop, which was
    offered no more, or of a busy computer.
    """
    if OFFERED_RATE not in run.metrics:
        return ""
    offered = run.metrics[OFFERED_RATE]
    speeds = [peer.metrics[FULL_SPEED].value for peer in _peers(run, columns)]
    return too_high(offered.value, min(speeds, default=None), offered.unit)


def _peers(run: RunRow, columns: Sequence[Column]) -> Iterator[RunRow]:
    offered = run.metrics[OFFERED_RATE].value
    for column in columns:
        if isinstance(column, RunGroup) and column.kind == run.kind:
            rated = [other for other in column.used if OFFERED_RATE in other.metrics and _speed_known(other)]
            alike = [other for other in rated if other.metrics[OFFERED_RATE].value == offered]
            in_round = [other for other in alike if (other.campaign_id, other.repeat) == (run.campaign_id, run.repeat)]
            yield from in_round or alike


def _speed_known(run: RunRow) -> bool:
    return FULL_SPEED in run.metrics and not run.metrics[FULL_SPEED].not_judged
