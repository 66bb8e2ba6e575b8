"""The roles of `hosts_growth.py`: one that reports the time ten times a second, and one that records a million rows."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from labconsole.clock import now_ns
from labconsole.model.role import Role
from labconsole.model.series import Column, Series

ROWS = Series(
    "rows",
    "As a receiver of AMQP messages records them",
    (
        *(Column(name, "i8", "ns", name) for name in ("number", "received_ns", "stamp_ms", "verify_ns", "decrypt_ns")),
        Column("size", "i4", "B", "size"),
        Column("outcome", "u1", "", "outcome"),
    ),
)
_STEP = 10_000


class TickingRole(Role):
    """Reports the time ten times a second."""

    def run(self) -> dict[str, Any]:
        for _ in range(self.context.settings["ticks"]):
            self.context.report(at_ns=now_ns())
            time.sleep(0.1)
        return {}


class RecordingRole(Role):
    """Records so many rows, which look like those of a trial."""

    def run(self) -> dict[str, Any]:
        writer, drawn = self.context.series(ROWS), np.random.default_rng(1)
        for first in range(0, self.context.settings["rows"], _STEP):
            numbers = np.arange(first, first + _STEP)
            columns = {column.name: drawn.integers(0, 100, _STEP) for column in ROWS.columns}
            writer.extend(**{**columns, "number": numbers, "received_ns": numbers * 20_000 + columns["received_ns"]})
        return {}
