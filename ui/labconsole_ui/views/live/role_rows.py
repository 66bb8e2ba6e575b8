"""The roles of a run as rows: counts, rates, gauges, fields of states, CPU and memory. No Qt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from labconsole.analysis.number_format import NO_FIGURE, format_number
from labconsole.engine.protocol import Usage
from labconsole.model.trial import LiveKind
from labconsole_ui.views.live.growing_curves import natural
from labconsole_ui.views.live.live_run import LiveRun

WORKER = "worker"
"""The process that controls the run, which is not a role."""
MAX_FIELDS = 12
"""Number of fields of one state that have a column each."""
LONGEST_LIST = 8
"""Number of entries of a list in a cell; its tooltip has all."""
_PLAIN = str | int | float | bool | None


@dataclass(frozen=True)
class RoleRow:
    """The newest values of one role by channel; `fields` by channel and key of the state."""

    name: str
    usage: Usage | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    gauges: Mapping[str, float] = field(default_factory=dict)
    fields: Mapping[tuple[str, str], Any] = field(default_factory=dict)


def role_rows(live: LiveRun) -> list[RoleRow]:
    """One row for each role that reported a value or has a process, in natural order."""
    frame = live.latest
    if frame is None:
        return []
    values = frame.by_role
    channels = live.role_channels
    totals = [channel.name for channel in channels if channel.kind is LiveKind.TOTAL]
    gauges = [channel.name for channel in channels if channel.kind is LiveKind.GAUGE]
    states = [channel.name for channel in channels if channel.kind is LiveKind.STATE]
    rates = {name: live.role_rates(name) for name in totals if name in values.counts}
    return [
        RoleRow(
            role,
            frame.usage.get(role),
            {name: values.counts[name][role] for name in totals if role in values.counts.get(name, {})},
            {name: of_roles[role] for name, of_roles in rates.items() if role in of_roles},
            {name: values.gauges[name][role] for name in gauges if role in values.gauges.get(name, {})},
            {
                (name, key): value
                for name in states
                for key, value in values.state(name, role).items()
                if _is_shown(value)
            },
        )
        for role in sorted((values.roles | frame.usage.keys()) - {WORKER}, key=natural)
    ]


def state_fields(rows: Sequence[RoleRow], known: Sequence[tuple[str, str]] = ()) -> list[tuple[str, str]]:
    """The fields of all states as (channel, key): those `known`, then others in order of appearance."""
    found = dict.fromkeys([*known, *(entry for row in rows for entry in row.fields)])
    kept: list[tuple[str, str]] = []
    for channel, key in found:
        if sum(other == channel for other, _ in kept) < MAX_FIELDS:
            kept.append((channel, key))
    return kept


def field_text(value: Any, longest: int | None = LONGEST_LIST) -> str:
    """A plain field of a state as text: a list as its entries, cut after `longest`."""
    if isinstance(value, list):
        shown = value if longest is None or len(value) <= longest else [*value[:longest], "…"]
        return ", ".join(field_text(entry) for entry in shown)
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: NO_FIGURE}[value]
    return format_number(value) if isinstance(value, int | float) else str(value)


def field_key(value: Any) -> tuple[int, float, str]:
    """The sort key of a field: numbers by value, lists by length, and then texts."""
    if isinstance(value, list):
        return (0, float(len(value)), "")
    if isinstance(value, int | float):
        return (0, float(value), "")
    return (1, 0.0, str(value).casefold())


def _is_shown(value: Any) -> bool:
    return isinstance(value, _PLAIN) or (isinstance(value, list) and all(isinstance(entry, _PLAIN) for entry in value))
