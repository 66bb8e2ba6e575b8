"""Arrivals of past runs as a log: by the hours of the operator's clock, and only of runs in real time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from labconsole.errors import UserError
from labconsole_keypool.planning.arrival_log import arrivals_of_runs
from tests.helpers.run_row import finished_run

LIVE = "keypool.signing-service"
MINUTE_NS = 60 * 10**9


@dataclass
class Tables:
    """`Samples` in memory: minutes of arrival by series."""

    minutes: Mapping[str, list[int]]

    def roles(self, series: str) -> list[str]:
        return ["service"] if series in self.minutes else []

    def table(self, series: str, role: str) -> dict[str, NDArray[Any]]:
        return {"received": np.array(self.minutes[series], np.int64) * MINUTE_NS}


@dataclass
class Detail:
    provenance: Mapping[str, Any]


class Runs:
    """A substitute for a database's reader: runs as (kind, parameters, clock's offset in hours, minutes by series)."""

    path = Path("here.db")

    def __init__(self, *runs: tuple[str, Mapping[str, Any], int | None, Mapping[str, list[int]]]) -> None:
        self._runs = dict(enumerate(runs, 1))

    def runs(self, metrics: object) -> list[Any]:
        return [finished_run(number, kind, parameters, {}) for number, (kind, parameters, *_) in self._runs.items()]

    def run(self, number: int) -> Detail:
        offset = self._runs[number][2]
        return Detail({} if offset is None else {"wall_offset_ns": offset * 60 * MINUTE_NS})

    def samples(self, number: int) -> Tables:
        return Tables(self._runs[number][3])


def test_requests_of_all_runs_are_counted_by_hour_dropped_and_failed_ones_too() -> None:
    first = {"requests": [0, 1, 59, 60], "drops": [61], "failures": [179]}
    log = arrivals_of_runs(Runs((LIVE, {}, 500_000, first), (LIVE, {"timing": ""}, 500_004, {"requests": [5]})))  # type: ignore[arg-type]
    assert log.start == datetime.fromtimestamp(500_000 * 3600)
    assert (log.requests.tolist(), log.source) == ([3, 2, 1, 0, 1], "Runs of here.db")


def test_simulated_and_sped_up_runs_came_at_no_real_time() -> None:
    came = {"requests": [1, 2]}
    sped_up = {"timing": "luna-sa-1700", "emulation_speed": 10.0}
    runs = [("keypool.simulation", {}, 1, came), (LIVE, sped_up, 1, came), (LIVE, {}, None, came)]
    with pytest.raises(UserError, match="has no run of the signing service in real time"):
        arrivals_of_runs(Runs(*runs))  # type: ignore[arg-type]
    real = (LIVE, {**sped_up, "emulation_speed": 1.0}, 1, came)
    assert arrivals_of_runs(Runs(*runs, real)).requests.tolist() == [2]  # type: ignore[arg-type]
