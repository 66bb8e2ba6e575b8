"""The service level of the source (section 1.3) as verdicts: 300 ms in normal hours, 3000 ms at peak."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from labconsole.analysis.figures import format_number
from labconsole.trial import Verdict
from labconsole_keypool.recorded import Recorded

NORMAL_MS, PEAK_MS = 300, 3000
_TOLERANCE = 0.01
"""A rate is above the base rate from this part of it on: times are rounded, and those of a live run tremble."""


def service_level(recorded: Recorded, base_rate: float) -> Iterator[Verdict]:
    """Both verdicts. A request arrives at peak if it and as many before it as the base rate has in a second came faster
    than at the base rate, by the time between the first and the last of them; one that was dropped or failed is never
    within its time.
    """
    peak = _at_peak(recorded.arrivals, base_rate)
    unsigned = np.concatenate((recorded.drops["received"], recorded.failures["received"]))
    times = np.concatenate((recorded.requests["received"], unsigned))
    within_peak = peak[np.searchsorted(recorded.arrivals, times)]
    latencies_ms = np.concatenate((recorded.latencies / 1e6, np.full(len(unsigned), np.inf)))
    rate = format_number(base_rate)
    for name, limit_ms, chosen, when in (
        ("300 ms in normal hours", NORMAL_MS, ~within_peak, f"at up to {rate} per second"),
        ("3000 ms at peak", PEAK_MS, within_peak, f"at more than {rate} per second"),
    ):
        yield _verdict(name, limit_ms, latencies_ms[chosen], when, base_rate)


def _at_peak(arrivals: NDArray[np.int64], base_rate: float) -> NDArray[np.bool_]:
    """Of each arrival whether the last second's worth of them took less time than at `base_rate`.

    Those of one moment arrive together. The first ones, with too few before them to tell a rate, are none of a peak.
    """
    distances = math.ceil(base_rate)
    last = np.searchsorted(arrivals, arrivals, "right") - 1
    first = last - distances
    span_ns = arrivals - arrivals[np.maximum(first, 0)]
    return np.asarray((first >= 0) & (span_ns < distances / base_rate * 1e9 / (1 + _TOLERANCE)))


def _verdict(name: str, limit_ms: int, latencies_ms: NDArray[np.float64], when: str, base_rate: float) -> Verdict:
    total = len(latencies_ms)
    within = int(np.count_nonzero(latencies_ms <= limit_ms))
    evidence = {"requests": total, "within": within, "limit_ms": limit_ms, "base_rate": base_rate}
    if not total:
        return Verdict(name, "unknown", f"No request arrived {when}.", evidence)
    share = within * 1000 // total / 10  # Rounded down: 100 % are all of them.
    reason = f"{within:,} of {total:,} requests that arrived {when} were signed within {limit_ms:,} ms ({share:.1f} %)."
    return Verdict(name, "pass" if within == total else "fail", reason, evidence)
