"""How many requests wait, and when that changes: from what became of them, part by part."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labconsole_keypool.simulation.simulator import Outcome

Changes = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Each change of the number of requests that wait: (ns since T0, their number from then on), equal lengths."""


class QueueLengths:
    """A request waits from its arrival until a thread takes it. Of several changes at one moment the last one is given,
    and who leaves does so before who comes: never are there more than the queue holds."""

    def __init__(self) -> None:
        self._t = np.empty(0, np.int64)
        self._steps = np.empty(0, np.int64)
        self._length = 0

    def after(self, outcome: Outcome) -> Changes:
        """The changes that are certain after the next part: those before its last arrival."""
        waits = ~outcome.dropped & (outcome.started > outcome.received)
        count = int(np.count_nonzero(waits))
        self._t = np.concatenate((self._t, outcome.started[waits], outcome.received[waits]))
        self._steps = np.concatenate((self._steps, np.repeat((-1, 1), count)))
        return self._until(int(outcome.received[-1])) if len(outcome.received) else self._until(0)

    def rest(self) -> Changes:
        """The changes that remain when no further request comes: the queue runs empty."""
        return self._until(int(self._t.max(initial=0)) + 1)

    def _until(self, end_ns: int) -> Changes:
        order = np.lexsort((self._steps, self._t))
        t, steps = self._t[order], self._steps[order]
        certain = int(np.searchsorted(t, end_ns, "left"))
        self._t, self._steps = t[certain:], steps[certain:]
        t, lengths = t[:certain], self._length + np.cumsum(steps[:certain])
        self._length += int(steps[:certain].sum())
        last = np.append(t[1:] != t[:-1], True)[:certain]
        return t[last], lengths[last]
