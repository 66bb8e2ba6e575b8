"""Arrivals of past runs of the live signing service, as requests in each hour of the operator's clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from labconsole.errors import UserError
from labconsole.model.trial import Samples
from labconsole.store.reader import Reader
from labconsole.store.records import RunRow
from labconsole_keypool.planning.arrival_log import ArrivalLog, hourly
from labconsole_keypool.planning.plan_measurements import LIVE_KIND
from labconsole_keypool.series import DROPS, FAILURES, LIVE_REQUESTS

_HOUR_NS = 3600 * 10**9


def arrivals_of_runs(reader: Reader) -> ArrivalLog:
    """Requests of all live runs, dropped and failed ones too; those of a sped-up emulation came at no real time.

    Raises:
        UserError: there are none.
        StoreError: the database is damaged.
    """
    hours: Counter[datetime] = Counter()
    for run in reader.runs(metrics=()):
        offset_ns = reader.run(run.id).provenance.get("wall_offset_ns") if _in_real_time(run) else None
        if offset_ns is None:
            continue
        for received_ns in _received(reader.samples(run.id)):
            numbers, counts = np.unique((received_ns + int(offset_ns)) // _HOUR_NS, return_counts=True)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                hours[datetime.fromtimestamp(number * 3600)] += count
    if not hours:
        raise UserError(
            f"{reader.path.name} has no run of the signing service in real time: run it, or import a log of arrivals."
        )
    return hourly(hours, f"Runs of {reader.path.name}")


def _in_real_time(run: RunRow) -> bool:
    return run.kind == LIVE_KIND and (not run.parameters.get("timing") or run.parameters.get("emulation_speed", 1) == 1)


def _received(samples: Samples) -> Iterator[NDArray[np.int64]]:
    for series in (LIVE_REQUESTS, DROPS, FAILURES):
        for role in samples.roles(series.name):
            yield samples.table(series.name, role)["received"]
