"""The series and live counters of the signing service: requests, drops, failures, the queue."""

from __future__ import annotations

from typing import Any

import numpy as np

from labconsole.model.role import RoleContext
from labconsole.model.trial import Origin, Series
from labconsole_keypool.choices import KeyOrigin
from labconsole_keypool.messages.service_frames import Done, Job, JobStatus
from labconsole_keypool.series import (
    DROPPED_CHANNEL,
    DROPS,
    FAILURES,
    FROM_POOL_CHANNEL,
    FROM_RAM_CHANNEL,
    FROM_STORE_CHANNEL,
    GENERATED_CHANNEL,
    LATENCY_CHANNEL,
    LIVE_REQUESTS,
    PROCESSED_CHANNEL,
    QUEUE,
    RECEIVED_CHANNEL,
    SETTLED_CHANNEL,
    TAKEN_CHANNEL,
    of_origin,
)

_SOURCES = {
    KeyOrigin.TOKEN_RAM: FROM_RAM_CHANNEL,
    KeyOrigin.TOKEN_STORE: FROM_STORE_CHANNEL,
    KeyOrigin.POOL: FROM_POOL_CHANNEL,
    KeyOrigin.GENERATED: GENERATED_CHANNEL,
}


class RequestLog:
    """Buffers rows until `flush`. `speed` is the device's time over the time that passes (an emulated device)."""

    def __init__(self, context: RoleContext, origin: Origin, speed: float) -> None:
        self._context = context
        self._speed = speed
        self._rows = {series: _Rows(context, series, origin) for series in (LIVE_REQUESTS, DROPS, FAILURES, QUEUE)}
        self._latencies: list[int] = []
        self.answered = self.failed = self.received = 0

    def arrived(self, at_ns: int) -> None:
        """A request arrived."""
        self.received += 1
        self._context.count(RECEIVED_CHANNEL.name, 1, (at_ns, at_ns))

    def dropped(self, job: Job) -> None:
        """It found the queue full."""
        self._rows[DROPS].append(job.request, job.received_ns)
        self._context.count(DROPPED_CHANNEL.name, 1)
        self._context.count(SETTLED_CHANNEL.name, 1)

    def taken(self, jobs: int) -> None:
        """So many left the queue; fewer than none where a lost signer's came back."""
        self._context.count(TAKEN_CHANNEL.name, jobs)

    def queue(self, at_ns: int, length: int) -> None:
        """So many wait from `at_ns` on."""
        self._rows[QUEUE].append(at_ns, length)

    def answer(self, job: Job, done: Done) -> None:
        """A signer answered."""
        self._context.count(SETTLED_CHANNEL.name, 1)
        if done.status is JobStatus.FAILED:
            self.failed += 1
            self._rows[FAILURES].append(job.request, job.received_ns, done.finished_ns)
            return
        self.answered += 1
        times = (job.received_ns, done.started_ns, done.got_key_ns, done.finished_ns)
        self._rows[LIVE_REQUESTS].append(job.request, *times, done.source, done.signed_ns, done.key)
        self._latencies.append(done.finished_ns - job.received_ns)
        self._context.count(PROCESSED_CHANNEL.name, 1)
        self._context.count(_SOURCES[done.source].name, 1)

    def flush(self) -> None:
        """Write all buffered rows."""
        for rows in self._rows.values():
            rows.flush()
        latencies_ns = np.array(self._latencies, np.int64)
        self._latencies.clear()
        self._context.observe(LATENCY_CHANNEL.name, np.rint(latencies_ns * self._speed).astype(np.int64))


class _Rows:
    """Buffered rows of one series: writing a single one costs as much as writing hundreds together."""

    def __init__(self, context: RoleContext, series: Series, origin: Origin) -> None:
        self._names = [column.name for column in series.columns]
        self._writer = context.series(of_origin(series, origin))
        self._rows: list[tuple[Any, ...]] = []

    def append(self, *values: int) -> None:
        self._rows.append(values)

    def flush(self) -> None:
        if self._rows:
            self._writer.extend(**dict(zip(self._names, zip(*self._rows, strict=True), strict=True)))
            self._rows.clear()
