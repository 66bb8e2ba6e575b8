"""What a role reports live: counts and observations since T0, and the newest gauges and states."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.clock import now_ns
from labconsole.engine.histogram import LogHistogram
from labconsole.engine.protocol import LIVE, ChannelFrame, higher, lower
from labconsole.errors import UserError

STATE_BYTES = 4096
"""Most bytes of all states of a role together, as JSON."""
VALUES_INTERVAL_NS = 100_000_000
"""Gauges and states are reported again after this time at the earliest, however often a live view wants frames."""


class _Total:
    """What a role counted or observed on one channel since T0."""

    def __init__(self) -> None:
        self.count = 0
        self.first_ns: int | None = None
        self.last_ns: int | None = None
        self.minimum: int | None = None
        self.maximum: int | None = None
        self.histogram = LogHistogram()

    def add(self, amount: int, first_ns: int, last_ns: int) -> None:
        self.first_ns = lower(self.first_ns, first_ns)
        self.last_ns = higher(self.last_ns, last_ns)
        self.count += amount

    def observe(self, values: NDArray[np.int64]) -> None:
        self.minimum = lower(self.minimum, int(values.min()))
        self.maximum = higher(self.maximum, int(values.max()))
        self.histogram.add(values)
        self.count += len(values)

    def frame(self) -> ChannelFrame:
        return ChannelFrame(self.count, self.minimum, self.maximum, self.histogram, self.first_ns, self.last_ns)


class RoleLive:
    """The live channels of one role. Each message has everything, so that any of them may be dropped."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._totals: dict[str, _Total] = {}
        self._gauges: dict[str, float] = {}
        self._states: dict[str, Mapping[str, Any]] = {}
        self._values: dict[str, Any] = {}
        self._next_values_ns = 0

    def count(self, channel: str, amount: int, span_ns: tuple[int, int] | None) -> None:
        """Add to a counter; `span_ns` is now where it is not said."""
        first_ns, last_ns = span_ns or (now_ns(),) * 2
        self._total(channel).add(amount, first_ns, last_ns)

    def observe(self, channel: str, values_ns: NDArray[np.int64]) -> None:
        """Add observations, one at least."""
        self._total(channel).observe(values_ns)

    def gauge(self, channel: str, value: float) -> None:
        """Set a gauge."""
        self._gauges[channel] = float(value)

    def state(self, channel: str, values: Mapping[str, Any]) -> None:
        """Set a state; what it is made of is looked at when it is reported."""
        self._states[channel] = dict(values)

    def message(self, *, last: bool = False) -> dict[str, Any]:
        """The message for the worker; the `last` one has the newest values. Raises UserError for states that are too
        large or not JSON."""
        message = {"t": LIVE, "channels": {name: total.frame().to_json() for name, total in self._totals.items()}}
        now = now_ns()
        if (self._gauges or self._states) and (last or now >= self._next_values_ns):
            self._next_values_ns = now + VALUES_INTERVAL_NS
            self._values = {"gauges": dict(self._gauges), "states": self._encoded()}
        return message | self._values

    def _encoded(self) -> dict[str, str]:
        """The states as JSON texts: worker and frames pass them on unread."""
        texts: dict[str, str] = {}
        size = 0
        try:
            for channel, values in self._states.items():
                texts[channel] = json.dumps(values, separators=(",", ":"), ensure_ascii=False)
                size += len(texts[channel].encode())
        except (TypeError, ValueError) as error:
            del self._states[channel]
            raise UserError(f"The live state {channel} of role {self._role} is not plain JSON: {error}.") from error
        if size > STATE_BYTES:
            self._states.clear()
            raise UserError(
                f"The live state of role {self._role} ({', '.join(texts)}) has {size:,} bytes, and {STATE_BYTES:,} at "
                "most are shown: report less."
            )
        return texts

    def _total(self, name: str) -> _Total:
        total = self._totals.get(name)
        if total is None:
            total = self._totals[name] = _Total()
        return total
