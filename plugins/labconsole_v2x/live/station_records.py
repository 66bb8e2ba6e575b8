"""What the stations of a process record: rows and frames wait in memory until they are written, and counted live."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from struct import Struct
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from labconsole.clock import wall_offset_ns
from labconsole.model.role import RoleContext
from labconsole.model.series import TIME_PROGRESS, Attachment, LiveChannel, Series
from labconsole_v2x.live.process_settings import ProcessSettings
from labconsole_v2x.live.series import (
    ACCEPTED_CHANNEL,
    AGE_CHANNEL,
    DELIVERED_CHANNEL,
    QUEUE,
    QUEUE_CHANNEL,
    REASONS_CHANNEL,
    RECEIVED,
    RECEIVED_CHANNEL,
    REJECTED_CHANNEL,
    SENT,
    STATIONS,
    VERIFY_CHANNEL,
)
from labconsole_v2x.stations.capture import capture_header, packet_block
from labconsole_v2x.stations.receiving import REASONS
from labconsole_v2x.stations.transmission import Instance

T = TypeVar("T")


class PackedRows:
    """Rows of a series that threads append, and the thread of the role takes.

    They are packed where they are appended: taking them costs next to nothing a row, and a receiver that checks packets
    meanwhile does not wait for the interpreter.
    """

    def __init__(self, series: Series) -> None:
        self._names = [column.name for column in series.columns]
        self._pack = Struct(f"{len(self._names)}q").pack
        self._rows: list[bytes] = []

    def append(self, row: Sequence[int]) -> None:
        """Append a row, with a value for each column."""
        self._rows.append(self._pack(*row))

    def take(self) -> dict[str, NDArray[np.int64]]:
        """Remove and return what was appended until now, as columns."""
        rows = self._rows[:]
        del self._rows[: len(rows)]
        values = np.frombuffer(b"".join(rows), np.int64).reshape(-1, len(self._names))
        return dict(zip(self._names, values.T, strict=True))


class StationRecords:
    """Threads append to `sent`, `received`, changes and capture; the thread of the role writes."""

    def __init__(self, context: RoleContext, settings: ProcessSettings, sent_channel: LiveChannel) -> None:
        """`sent_channel` counts what is sent, except by the roadside station, whose CAMs count for nothing."""
        self.sent = PackedRows(SENT)
        self.received = PackedRows(RECEIVED)
        self.senders: frozenset[int] = frozenset()
        """MAC addresses of the run's sending stations, as numbers."""
        self._context = context
        self._settings = settings
        self._sent_channel = sent_channel
        self._captured: deque[tuple[int, bytes]] = deque()
        self._changed: deque[tuple[int, ...]] = deque()
        """A row of `STATIONS` for each change of identity."""
        self._reasons: Counter[str] = Counter()
        self._capture_file: Attachment | None = None
        self._seconds = 0

    def begin(self, instances: Sequence[Instance]) -> None:
        """Record the first names of all instances."""
        self._stations_series = self._context.series(STATIONS)
        self._changed.extend(_station_row(one, 0) for one in instances)
        self._write_changes()

    def begin_run(self) -> None:
        """Declare the other series, and begin the capture."""
        context, settings = self._context, self._settings
        self._sent_series = context.series(SENT)
        if settings.records:
            self._received_series, self._queue_series = context.series(RECEIVED), context.series(QUEUE)
        if settings.records and settings.capture:
            transport = settings.transport_settings(context.address)
            self._capture_file = context.attachment("capture.pcapng", "application/x-pcapng")
            self._capture_file.write(capture_header([f"{transport.kind} {transport.interface}"], "lab console"))
            self._wall_offset_ns = wall_offset_ns()

    def identity_changed(self, instance: Instance, at_ns: int) -> None:
        """Remember the new names of an instance, in the thread that sends."""
        self._changed.append(_station_row(instance, at_ns))

    def capture(self, frame: bytes, received_ns: int) -> None:
        """Remember a frame, if there is a capture."""
        if self._capture_file is not None:
            self._captured.append((received_ns, frame))

    def write(self, now: int, waiting: int) -> None:
        """Write what was recorded, and report live values; `waiting` is the length of the receiver's queue."""
        context = self._context
        self._write_changes()
        sent = self.sent.take()
        if sent_ns := sent["sent_ns"].tolist():
            self._sent_series.extend(**sent)
            if not self._settings.roadside:
                context.count(self._sent_channel.name, len(sent_ns), (sent_ns[0], sent_ns[-1]))
        if self._settings.records:
            self._write_received()
            self._queue_series.extend(t_ns=[now], length=[waiting])
            context.gauge(QUEUE_CHANNEL.name, waiting)
        if self._capture_file is not None:
            blocks = (packet_block(at + self._wall_offset_ns, frame) for at, frame in _taken(self._captured))
            self._capture_file.write(b"".join(blocks))
        if self._settings.stations[0] == 1:
            seconds = int(min((now - context.start_ns) / 1e9, self._settings.total_s))
            context.count(TIME_PROGRESS.name, max(0, seconds - self._seconds))
            self._seconds = max(self._seconds, seconds)
        context.tick()

    def close(self) -> None:
        """Complete the capture."""
        if self._capture_file is not None:
            self._capture_file.close()

    def _write_changes(self) -> None:
        if rows := _taken(self._changed):
            columns = zip(STATIONS.columns, zip(*rows, strict=True), strict=True)
            self._stations_series.extend(
                **{column.name: np.array(values, column.numpy_type) for column, values in columns}
            )

    def _write_received(self) -> None:
        columns, context = self.received.take(), self._context
        if not len(columns["reason"]):
            return
        self._received_series.extend(**columns)
        accepted, done = columns["reason"] == 0, columns["done_ns"]
        first = columns["waited"] == 0
        span_ns = (int(done.min()), int(done.max()))
        context.count(RECEIVED_CHANNEL.name, int(np.count_nonzero(first)), span_ns)
        context.count(ACCEPTED_CHANNEL.name, int(np.count_nonzero(accepted)), span_ns)
        delivered = accepted & np.array([source in self.senders for source in columns["source"].tolist()])
        context.count(DELIVERED_CHANNEL.name, int(np.count_nonzero(delivered)), span_ns)
        context.count(REJECTED_CHANNEL.name, int(np.count_nonzero(~accepted)), span_ns)
        context.observe(AGE_CHANNEL.name, columns["age_ns"][accepted])
        context.observe(VERIFY_CHANNEL.name, columns["verify_ns"][columns["verify_ns"] > 0].astype(np.int64))
        self._reasons.update(REASONS[reason] for reason in columns["reason"][~accepted].tolist())
        context.state(REASONS_CHANNEL.name, dict(self._reasons))


def _station_row(instance: Instance, from_ns: int) -> tuple[int, ...]:
    """A row of `STATIONS`: the names under which an instance sends from then on."""
    sender = instance.sender
    ticket = int.from_bytes(sender.ticket.hashed_id8, "big") if sender.ticket else 0
    return (instance.station, instance.number, instance.source, sender.identity.station_id, ticket, from_ns)


def _taken(waiting: deque[T]) -> list[T]:
    """Remove and return what waits now; other threads may append meanwhile."""
    return [waiting.popleft() for _ in range(len(waiting))]
