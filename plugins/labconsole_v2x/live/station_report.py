"""What a process reports of its stations while a run is in progress: places, CAMs sent, and whom they hear."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from labconsole.clock import now_ns
from labconsole_v2x.stations.receiving import ReceivingStation
from labconsole_v2x.stations.routes import Route
from labconsole_v2x.stations.transmission import Transmission

_HEARD_NS = 1_000_000_000
_STATIONS_A_PART = 30


class StationReport:
    """Makes the states of `STATIONS_CHANNEL`: each has the next part of the stations."""

    def __init__(
        self,
        routes: Mapping[int, Route],
        transmission: Transmission,
        receivers: Mapping[int, ReceivingStation],
        sources: Mapping[bytes, int],
        start_ns: int,
    ) -> None:
        """`routes` and `receivers` by the number of a station, `sources`: MAC addresses of all stations of the run."""
        self._routes = routes
        self._transmission = transmission
        self._receivers = receivers
        self._sources = sources
        self._start_ns = start_ns
        self._numbers = list(routes)
        self._first = 0

    def next(self) -> dict[str, Any]:
        """The next part, from the beginning again after the last one."""
        now = now_ns()
        shown = self._numbers[self._first :][:_STATIONS_A_PART]
        self._first += len(shown)
        if self._first == len(self._numbers):
            self._first = 0
        places = [self._routes[number].at((now - self._start_ns) / 1e9) for number in shown]
        return {
            "first": shown[0],
            "east": [round(place.east_m) for place in places],
            "north": [round(place.north_m) for place in places],
            "sent": [self._transmission.sent_by[number] for number in shown],
            "on": [int(self._transmission.is_on(number)) for number in shown],
            "heard": list(self._heard(shown, now)),
        }

    def _heard(self, numbers: Sequence[int], now: int) -> Iterator[str]:
        for number in numbers:
            if number in self._receivers:
                neighbours = self._receivers[number].neighbours.heard_since(now - _HEARD_NS)
                heard = {self._sources[mac] for mac, _ in neighbours if mac in self._sources}
                yield f"{sum(1 << one for one in heard):x}"
