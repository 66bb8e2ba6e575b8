"""A stack of a station as a finite queue: packets wait for it, and those that find no room are lost."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray


class StackQueue:
    """Serves packets in order of their arrival; `room` counts those that wait and those in service."""

    def __init__(self, room: int, servers: int = 1) -> None:
        self._room = room
        self._free_s = [0.0] * servers
        self._done_s: list[float] = []

    def served_s(self, arrived_s: float, service_s: float) -> float:
        """When the next packet has been served, in s; not a number for one without room."""
        done_s = self._done_s
        while done_s and done_s[0] <= arrived_s:
            heapq.heappop(done_s)
        if len(done_s) >= self._room:
            return np.nan
        done = max(self._free_s[0], arrived_s) + service_s
        heapq.heapreplace(self._free_s, done)
        heapq.heappush(done_s, done)
        return done


def served_s(
    arrived_s: NDArray[np.float64], service_s: NDArray[np.float64], room: int, servers: int = 1
) -> NDArray[np.float64]:
    """When each packet has been served by a finite queue, as `StackQueue`; `arrived_s` ascends."""
    queue = StackQueue(room, servers)
    packets = zip(arrived_s.tolist(), service_s.tolist(), strict=True)
    return np.array([queue.served_s(arrived, service) for arrived, service in packets])
