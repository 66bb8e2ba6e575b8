"""The messages of a soak in windows of time, added up block by block: its memory does not grow with the messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from labconsole.engine.protocol import LogHistogram
from labconsole.model.trial import Event, Metric, Samples
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.integrity import Arrivals, arrivals_in_order
from labconsole_amqp.trial.joining import JoinedSamples
from labconsole_amqp.trial.latency import counted_rows, latencies_ns
from labconsole_amqp.trial.message_table import SentBlocks
from labconsole_amqp.trial.metrics import metric

MOST_WINDOWS, FEWEST_WINDOWS = 60, 20
SHORTEST_S, FEWEST_MESSAGES = 5.0, 1_000
"""Seconds and messages that each window should have: where a run is too short for that, it has the fewest windows."""
BINS_PER_OCTAVE: Final = 512
"""A bin of latencies spans 0.14 %: its middle is within 0.07 % of any value in it."""

BlockFigures = Callable[[JoinedSamples], Iterable[Metric]]
"""Figures of a block of messages that can be added up: counts in messages, and means."""


@dataclass
class Span:
    """How many times were added, and the first and the last of them."""

    count: int = 0
    first_ns: int = 0
    last_ns: int = 0

    def add(self, times: NDArray[np.int64]) -> None:
        """Add times in any order."""
        if len(times):
            first, last = int(times.min()), int(times.max())
            self.first_ns = min(self.first_ns, first) if self.count else first
            self.last_ns = max(self.last_ns, last) if self.count else last
            self.count += len(times)

    @property
    def seconds(self) -> float:
        """From the first to the last, 0 without two of them."""
        return (self.last_ns - self.first_ns) / 1e9


class SoakWindows:
    """A soak's messages: latencies and arrivals by window, and totals.

    A latency belongs to the window in which its message was due. Messages of the warm-up are in the totals only.
    """

    def __init__(self, parameters: AmqpParameters, begin_ns: int, edges_ns: NDArray[np.int64]) -> None:
        self._parameters = parameters
        self._begin_ns = begin_ns
        self.edges_ns = edges_ns
        self.latencies = [_histogram() for _ in edges_ns[1:]]
        self.arrived = np.zeros(len(edges_ns) - 1, np.int64)
        """Good messages that arrived in each window."""
        self.latency_sum_ns, self.latency = 0, Span()
        """The smallest and the largest latency are `first_ns` and `last_ns`."""
        self.lateness = _histogram()
        """How late senders began to seal or send a message, ns."""
        self.sending: dict[int, Span] = {}
        """Times at which each sender sent its messages that count."""
        self.sent, self.received, self.good = Span(), Span(), Span()
        """Times of all messages sent; of all received after the warm-up; of the good ones among these."""
        self.refused = 0
        self.arrivals = Arrivals(0, 0)
        self._totals: dict[tuple[str, ...], Metric] = {}
        self._in_order: dict[int, NDArray[np.int64]] = {}

    @classmethod
    def read(
        cls,
        parameters: AmqpParameters,
        samples: Samples,
        events: Sequence[Event],
        figures: BlockFigures = lambda joined: (),
    ) -> Self | None:
        """Add up all messages of a run; None where none was sent."""
        blocks = SentBlocks(parameters, samples)
        found = None
        for joined in blocks:
            if found is None:
                begin_ns = next(
                    (event.data["begin_ns"] for event in events if event.name == "T0"),
                    int(joined.sent["intended_ns"].min()),
                )
                counted = max(0, blocks.most_of_a_sender - parameters.warm_up)
                after_warm_up_ns = begin_ns + int(parameters.warm_up / parameters.rate * 1e9)
                found = cls(parameters, begin_ns, _edges(after_warm_up_ns, counted, parameters))
            found._add(joined, events, figures)
        if found is not None:
            found._add(blocks.strays(), events, figures)
        return found

    @property
    def totals(self) -> list[Metric]:
        """The figures of all blocks together."""
        return list(self._totals.values())

    @property
    def all_latencies(self) -> LogHistogram:
        """Those of all windows."""
        first, *others = self.latencies
        return first.plus(*others)

    @property
    def width_s(self) -> float:
        """Length of each window."""
        return int(self.edges_ns[1] - self.edges_ns[0]) / 1e9

    @property
    def middles_s(self) -> NDArray[np.float64]:
        """The middle of each window, in seconds since T0."""
        return np.asarray((self.edges_ns[1:] + self.edges_ns[:-1]) / 2 - self._begin_ns, np.float64) / 1e9

    def quantiles_ms(self, fraction: float) -> NDArray[np.float64]:
        """A percentile of each window's latencies; NaN without any."""
        found = (histogram.quantile(fraction) for histogram in self.latencies)
        return np.array([np.nan if value is None else value / 1e6 for value in found])

    def means(self, times: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.float64]:
        """The mean of readings in each window; NaN without any. `times` (`clock.now_ns`) are rising."""
        cuts = np.searchsorted(times, self.edges_ns).tolist()
        parts = (values[begin:end] for begin, end in pairwise(cuts))
        return np.fromiter((part.mean() if len(part) else np.nan for part in parts), np.float64, len(cuts) - 1)

    def _add(self, joined: JoinedSamples, events: Sequence[Event], figures: BlockFigures) -> None:
        parameters, sent, received = self._parameters, joined.sent, joined.received
        for one in figures(joined):
            self._add_total(one)
        self._add_out_of_order(joined)
        here = Arrivals.of(parameters, joined)
        self.arrivals = Arrivals(*map(sum, zip(self.arrivals, here, strict=True)))
        counted = sent["seq"] >= parameters.warm_up
        self.sent.add(sent["sent_ns"])
        for role in np.unique(sent["role"]).tolist():
            self.sending.setdefault(role, Span()).add(sent["sent_ns"][counted & (sent["role"] == role)])
        sealing_ns = sent["sign_ns"] + sent["encrypt_ns"]
        self.lateness.add((sent["sent_ns"] - sent["intended_ns"] - sealing_ns)[counted])
        rows = counted_rows(parameters, joined)
        self.received.add(received["received_ns"][rows])
        good_ns = received["received_ns"][rows & joined.good]
        self.good.add(good_ns)
        self.refused += int(np.count_nonzero(rows & ~joined.good))
        self.arrived += np.histogram(good_ns, self.edges_ns)[0]
        times, latencies = latencies_ns(parameters, joined, events)
        self.latency_sum_ns += int(latencies.sum())
        self.latency.add(latencies)
        places = np.searchsorted(self.edges_ns, times - latencies, "right") - 1
        places = np.clip(places, 0, len(self.latencies) - 1)
        for place in np.unique(places).tolist():
            self.latencies[place].add(latencies[places == place])

    def _add_total(self, one: Metric) -> None:
        key = (one.name, *one.labels.values())
        before = self._totals.get(key)
        self._totals[key] = one if before is None else _together(before, one)

    def _add_out_of_order(self, joined: JoinedSamples) -> None:
        """Count messages of the block before that arrived after one of this block, too."""
        here = arrivals_in_order(joined)
        overtaken = sum(
            int(np.count_nonzero(self._in_order[pair] > times.min()))
            for pair, times in here.items()
            if pair in self._in_order
        )
        if overtaken:
            self._add_total(metric("out_of_order", overtaken, 0))
        self._in_order = here


def _histogram() -> LogHistogram:
    return LogHistogram(per_octave=BINS_PER_OCTAVE)


def _together(one: Metric, other: Metric) -> Metric:
    """The figure of two blocks: a sum of messages, or the mean."""
    samples = one.samples + other.samples
    if one.unit == "msg" or not samples:
        return replace(one, value=one.value + other.value, samples=samples)
    return replace(one, value=(one.value * one.samples + other.value * other.samples) / samples, samples=samples)


def _edges(begin_ns: int, messages: int, parameters: AmqpParameters) -> NDArray[np.int64]:
    """The limits of the windows from `begin_ns` on, in which the sender that sent most sent so many messages."""
    span_s = messages / parameters.rate
    wanted = min(int(span_s / SHORTEST_S), messages * parameters.senders // FEWEST_MESSAGES)
    count = min(max(wanted, FEWEST_WINDOWS), MOST_WINDOWS)
    return begin_ns + np.linspace(0, max(span_s, 1e-6) * 1e9, count + 1).astype(np.int64)
