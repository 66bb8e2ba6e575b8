"""Measure live frames of 300 roles: what one costs to build, to encode, to drop, to decode and to show.

Run it with `python tests/benchmarks/live_frames.py`; it starts no process, and needs no display.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labconsole.clock import now_ns
from labconsole.engine.protocol import (
    ChannelFrame,
    LiveFrame,
    LogHistogram,
    RoleValues,
    Usage,
    decode_line,
    encode_line,
)
from labconsole.engine.provenance import provenance
from labconsole.engine.role import RoleLive
from labconsole.engine.run_context import LiveValues
from labconsole.model.series import LiveChannel, LiveKind

ROLES = 300
NEIGHBOURS = 40
REPEATS = 40
CHANNELS = (
    LiveChannel("sent", "Sent", "msg", by_role=True),
    LiveChannel("latency", "Latency", "ns"),
    LiveChannel("rate", "Rate", "msg/s", kind=LiveKind.GAUGE),
    LiveChannel("load", "Load", "%", kind=LiveKind.GAUGE),
    LiveChannel("heard", "Heard", "", kind=LiveKind.STATE),
)
TOTALS_ONLY = tuple(replace(channel, by_role=False) for channel in CHANNELS[:2])


@dataclass
class Station:
    """What the worker knows of a role."""

    name: str
    channels: dict[str, ChannelFrame]
    gauges: dict[str, float]
    states: dict[str, str]


def main() -> None:
    """Print the figures, with machine and versions."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    said = provenance(0, 0)
    print(f"{said['cpu']}, {said['cores']} cores, {said['os']}, load {said['load_average_before'][0]}")
    print(f"console {said['console']} {said['revision']}, Python {said['python']}")
    reports()
    for title, channels, roles in (
        ("2 roles, totals alone", TOTALS_ONLY, stations(2, by_role=False)),
        (f"{ROLES} roles, totals alone", TOTALS_ONLY, stations(ROLES, by_role=False)),
        (f"{ROLES} roles with count, 2 gauges and a state of {NEIGHBOURS} neighbours", CHANNELS, stations(ROLES)),
    ):
        frames(title, channels, roles)
    table()


def reports() -> None:
    """A role's own cost: setting values in its loop, and its message ten times a second."""
    live, state = RoleLive("station-0"), neighbours(0)
    calls = 10_000

    def set_values() -> None:
        for _ in range(calls):
            live.gauge("rate", 10.0)
            live.state("heard", state)

    took = median(set_values) / calls

    def message() -> bytes:
        return encode_line(live.message(last=True))

    print(f"role: gauge and state set {took * 1e9:,.0f} ns, message {median(message) * 1e6:,.0f} µs")


def frames(title: str, channels: tuple[LiveChannel, ...], roles: list[Station]) -> None:
    """A frame from the worker's roles to the window's model."""
    values = LiveValues(channels)
    usage = {role.name: Usage(12.5, 60_000_000) for role in roles}

    def build() -> LiveFrame:
        values.check_all(roles)  # type: ignore[arg-type]
        totals, by_role = values.totals(roles), values.by_role(roles)  # type: ignore[arg-type]
        return LiveFrame(now_ns(), 1, 1, 0, totals, usage, "sent", by_role)

    frame = build()
    line = encode_line(frame.to_json())

    def decode() -> LiveFrame:
        message = decode_line(line)
        assert message is not None
        return LiveFrame.from_json(message)

    built, encoded, decoded = median(build), median(lambda: encode_line(frame.to_json())), median(decode)
    print(
        f"{title}: build {built * 1e3:.2f} ms, encode {encoded * 1e3:.2f} ms, {len(line) / 1e3:,.0f} kB; "
        f"decode, also where the window drops it, {decoded * 1e3:.2f} ms"
    )


def table() -> None:
    """The window: taking a frame, and the table of all roles."""
    from PySide6.QtWidgets import QApplication

    from labconsole_ui.theme.theme import Theme, ThemeMode
    from labconsole_ui.views.live.live_run import LiveRun
    from labconsole_ui.views.live.role_table import RoleTable

    app = QApplication([])
    live, view = LiveRun(CHANNELS), RoleTable(Theme(app, ThemeMode.LIGHT))
    view.begin(live.role_channels)
    view.resize(1000, 600)
    view.show()
    roles, values, takes = stations(ROLES), LiveValues(CHANNELS), []
    usage = {role.name: Usage(12.5, 60_000_000) for role in roles}

    def take() -> None:
        by_role: RoleValues = values.by_role(roles)  # type: ignore[arg-type]
        frame = LiveFrame(now_ns(), 1, 1, 0, values.totals(roles), usage, "sent", by_role)  # type: ignore[arg-type]
        begun = time.perf_counter()
        live.add_frame(frame)
        takes.append(time.perf_counter() - begun)

    def show() -> None:
        take()
        view.show_roles(live)
        app.processEvents()

    show()
    view.model.sort(3)
    print(
        f"window: table of {ROLES} roles {median(show) * 1e3:.1f} ms with its painting, of it "
        f"{statistics.median(takes) * 1e3:.2f} ms to take the frame"
    )


def stations(count: int, *, by_role: bool = True) -> list[Station]:
    """Roles with counts and a histogram each, and `by_role` with gauges and a state."""
    random = np.random.default_rng(1)
    made = []
    for number in range(count):
        histogram = LogHistogram()
        histogram.add((random.gamma(4.0, 500_000, 5_000)).astype(np.int64))
        live = RoleLive(f"station-{number}")
        live.gauge("rate", float(random.normal(10, 1)))
        live.gauge("load", float(random.normal(50, 10)))
        live.state("heard", neighbours(number))
        message: dict[str, Any] = live.message() if by_role else {"gauges": {}, "states": {}}
        latency = ChannelFrame(5_000, 1, 2, histogram)
        sent = ChannelFrame(5_000, first_ns=1, last_ns=2)
        made.append(
            Station(f"station-{number}", {"sent": sent, "latency": latency}, message["gauges"], message["states"])
        )
    return made


def neighbours(number: int) -> dict[str, Any]:
    """Whom a station hears."""
    return {"hears": [f"station-{(number + step) % ROLES}" for step in range(1, NEIGHBOURS + 1)], "count": NEIGHBOURS}


def median(work: Callable[[], Any]) -> float:
    """Seconds that `work` takes: the median of REPEATS."""
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


if __name__ == "__main__":
    main()
