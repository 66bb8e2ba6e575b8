"""The neighbour table of a station: what each accepted CAM says of its sender."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock
from typing import NamedTuple

from labconsole_v2x.messages.cam import Cam

MOST_NEIGHBOURS = 2048
"""The one that was heard longest ago makes room."""


class Neighbour(NamedTuple):
    """A station as of its newest CAM; latitude and longitude in 0.1 microdegree, speed in 0.01 m/s."""

    station_id: int
    heard_ns: int
    latitude: int
    longitude: int
    speed: int | None
    heading: int | None


class NeighbourTable:
    """Neighbours by MAC address; several threads may update it."""

    def __init__(self, most: int = MOST_NEIGHBOURS) -> None:
        self._most = most
        self._neighbours: OrderedDict[bytes, Neighbour] = OrderedDict()
        self._turn = Lock()

    def update(self, mac: bytes, message: Cam, heard_ns: int) -> None:
        """Enter a station's CAM, heard at a time of `labconsole.clock.now_ns`, unless a newer one is known.

        A packet that waited for a certificate comes after newer ones.
        """
        place, motion = message.position, message.motion
        speed, heading = (None, None) if motion is None else (motion.speed, motion.heading)
        heard = Neighbour(message.station_id, heard_ns, place.latitude, place.longitude, speed, heading)
        with self._turn:
            known = self._neighbours.get(mac)
            if known is not None and known.heard_ns > heard_ns:
                return
            self._neighbours[mac] = heard
            self._neighbours.move_to_end(mac)
            if len(self._neighbours) > self._most:
                self._neighbours.popitem(last=False)

    def heard_since(self, since_ns: int) -> Iterable[tuple[bytes, Neighbour]]:
        """The neighbours heard at or after this time."""
        with self._turn:
            neighbours = list(self._neighbours.items())
        return [(mac, one) for mac, one in neighbours if one.heard_ns >= since_ns]

    def __len__(self) -> int:
        """Return the number of neighbours."""
        return len(self._neighbours)
