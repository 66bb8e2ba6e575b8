"""Finite queues with one server, in order of arrival: the stacks of simulated stations."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray


def served_s(arrived_s: NDArray[np.float64], service_s: NDArray[np.float64], room: int) -> NDArray[np.float64]:
    """When each packet has been served, in s; not a number for one that found no room.

    `arrived_s` ascends; `room` counts the packets that wait and the one in service.
    """
    done: deque[float] = deque()
    last, served = 0.0, []
    for arrived, service in zip(arrived_s.tolist(), service_s.tolist(), strict=True):
        while done and done[0] <= arrived:
            done.popleft()
        if len(done) >= room:
            served.append(np.nan)
            continue
        last = max(last, arrived) + service
        done.append(last)
        served.append(last)
    return np.array(served)
