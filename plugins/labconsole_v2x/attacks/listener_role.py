"""The role of a tracker (A-PSN-01): a process that hears all frames, sends none, and records what each says of its
sender.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import ExitStack
from typing import Any

import numpy as np

from labconsole.clock import now_ns
from labconsole.model.role import Role, RoleContext
from labconsole.model.series import Column, Series
from labconsole.model.trial import Samples
from labconsole_v2x.attacks.tracking import Observation, PathTrace, observe
from labconsole_v2x.live.process_settings import ProcessSettings
from labconsole_v2x.live.series import QUIET_NS
from labconsole_v2x.stations.receiving import Reception
from labconsole_v2x.stations.transports import open_transport

OBSERVATIONS = Series(
    "observations",
    "What a tracker reads in each frame that it hears, without verifying it",
    (
        Column("t_ns", "i8", "ns", "Time at which the frame was read from the socket", by_clock=True),
        Column("source", "i8", "", "MAC address, as a number"),
        Column("gn_source", "i8", "", "MAC address in the GeoNetworking address, as a number"),
        Column("station_id", "i8", "", "Station ID; -1 in a packet without CAM"),
        Column("ticket", "u8", "", "HashedId8 of the ticket, as a number; 0 in a packet that is not secured"),
        Column("latitude", "i4", "", "In 0.1 microdegree"),
        Column("longitude", "i4", "", "In 0.1 microdegree"),
        Column("speed", "f4", "m/s", "Speed"),
        Column("heading", "f4", "", "In degrees"),
        Column("sequence_number", "i4", "", "Of GeoNetworking; -1 in a packet without one, such as a CAM"),
        Column("path", "bytes", "", "Path history: age in us (u4), latitude and longitude (i4) of each point"),
    ),
)
_POINT = np.dtype([("age_us", "<u4"), ("latitude", "<i4"), ("longitude", "<i4")])
_UPKEEP_S = 0.05


class ListenerRole(Role):
    """Records what it hears. Settings: those of `ProcessSettings`, without stations."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._settings = ProcessSettings.from_json(context.settings)
        self._resources = ExitStack()
        self._heard: deque[tuple[bytes, int]] = deque()

    def prepare(self) -> dict[str, Any]:
        """Open the transport: it has no key, and needs no ticket."""
        self.context.report(keys=[], names=[], address=self.context.address)
        transport = open_transport(self._settings.transport_settings(self.context.address), receiver=False)
        self._resources.callback(transport.close)
        self._reception = Reception(transport, (), on_frame=lambda *frame: self._heard.append(frame))
        self._resources.callback(self._reception.stop)
        return {}

    def run(self) -> dict[str, Any]:
        """Listen until the end, and as long as receivers do after it at least."""
        end_ns = self.context.start_ns + round(self._settings.total_s * 1e9) + QUIET_NS
        self._series = self.context.series(OBSERVATIONS)
        self._reception.start()
        heard = 0
        while now_ns() < end_ns and not self.context.stop_requested:
            heard += self._record()
            time.sleep(_UPKEEP_S)
        self._reception.stop()
        return {"heard": heard + self._record()}

    def _record(self) -> int:
        """Record what was heard meanwhile; how many frames can be read."""
        self._reception.check()
        frames = [self._heard.popleft() for _ in range(len(self._heard))]
        rows = [
            observation_row(at_ns, seen)
            for frame, at_ns in frames
            if (seen := observe(frame, at_ns // 1000)) is not None
        ]
        if rows:
            # Of a list of integers below and above 2^63 numpy makes floats: digests would be rounded.
            columns = zip(OBSERVATIONS.columns, zip(*rows, strict=True), strict=True)
            self._series.extend(**{column.name: np.array(values, column.numpy_type) for column, values in columns})
        self.context.tick()
        return len(rows)

    def close(self) -> None:
        """Close the transport."""
        self._resources.close()


def observation_row(at_ns: int, seen: Observation) -> tuple[Any, ...]:
    """The row of `OBSERVATIONS` for what was heard at a time of `labconsole.clock.now_ns`."""
    points = [(seen.time_us - point.time_us, point.latitude, point.longitude) for point in seen.path]
    return (
        at_ns,
        int.from_bytes(seen.mac, "big"),
        int.from_bytes(seen.gn_mac, "big"),
        -1 if seen.station_id is None else seen.station_id,
        int.from_bytes(seen.digest or b"", "big"),
        seen.latitude,
        seen.longitude,
        seen.speed,
        seen.heading,
        -1 if seen.sequence_number is None else seen.sequence_number,
        np.array(points, _POINT).tobytes(),
    )


def observations(samples: Samples) -> list[Observation]:
    """What the trackers of a run have heard, in order of time."""
    tables = [samples.table(OBSERVATIONS.name, role) for role in samples.roles(OBSERVATIONS.name)]
    seen = [
        _observation(*row)
        for table in tables
        for row in zip(*(table[column.name].tolist() for column in OBSERVATIONS.columns), strict=True)
    ]
    return sorted(seen, key=lambda one: one.time_us)


def _observation(
    at_ns: int,
    source: int,
    gn_source: int,
    station_id: int,
    ticket: int,
    latitude: int,
    longitude: int,
    speed: float,
    heading: float,
    sequence_number: int,
    path: bytes,
) -> Observation:
    time_us = at_ns // 1000
    return Observation(
        time_us,
        source.to_bytes(6, "big"),
        gn_source.to_bytes(6, "big"),
        latitude,
        longitude,
        speed,
        heading,
        ticket.to_bytes(8, "big") if ticket else None,
        None if station_id < 0 else station_id,
        tuple(PathTrace(time_us - age_us, *place) for age_us, *place in np.frombuffer(path, _POINT).tolist()),
        None if sequence_number < 0 else sequence_number,
    )
