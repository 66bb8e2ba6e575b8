"""The verdicts of a run: the service level of the source (section 1.3), and the integrity of a live run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.analysis.number_format import format_number
from labconsole.model.trial import Event, ServiceLevel, Verdict, VerdictKind
from labconsole_keypool.results.recorded_run import RecordedRun
from labconsole_keypool.series import END_EVENT, STORE_VERIFIED

NORMAL_MS, PEAK_MS = 300, 3000
LEVEL_KEPT = "service level kept"
"""The verdict that a report begins with."""

_NORMAL, _PEAK = "300 ms in normal hours", "3000 ms at peak"
SERVICE_LEVEL = ServiceLevel("Was the service level kept?", (_NORMAL, _PEAK))
"""By the parts, which runs of older versions have, too."""

_TOLERANCE = 0.01
"""A rate is above the base rate from this part of it on: times are rounded, and those of a live run vary."""


@dataclass(frozen=True)
class Part:
    """The requests of normal hours or of the peak, and how many of them were signed within `limit_ms`."""

    name: str
    limit_ms: int
    when: str
    requests: int
    within: int


def parts(recorded: RecordedRun, base_rate: float) -> tuple[Part, Part]:
    """Normal hours and peak. A request arrives at peak if it and as many before it as the base rate has in a second
    came faster than at the base rate, by the time between the first and the last of them; one that was dropped or
    failed is never within its time.
    """
    peak = _at_peak(recorded.arrivals, base_rate)
    unsigned = np.concatenate((recorded.drops["received"], recorded.failures["received"]))
    times = np.concatenate((recorded.requests["received"], unsigned))
    within_peak = peak[np.searchsorted(recorded.arrivals, times)]
    latencies_ms = np.concatenate((recorded.latencies / 1e6, np.full(len(unsigned), np.inf)))
    rate = format_number(base_rate)

    def part(name: str, limit_ms: int, chosen: NDArray[np.bool_], when: str) -> Part:
        return Part(name, limit_ms, when, int(chosen.sum()), int(np.count_nonzero(latencies_ms[chosen] <= limit_ms)))

    return (
        part(_NORMAL, NORMAL_MS, ~within_peak, f"at up to {rate} per second"),
        part(_PEAK, PEAK_MS, within_peak, f"at more than {rate} per second"),
    )


def service_level(judged: tuple[Part, ...], base_rate: float) -> Iterator[Verdict]:
    """Whether all requests were signed in time, then the same of normal hours and of the peak."""
    yield _whole(judged, base_rate)
    for part in judged:
        yield _verdict(part, base_rate)


def _whole(judged: tuple[Part, ...], base_rate: float) -> Verdict:
    total, within = sum(part.requests for part in judged), sum(part.within for part in judged)
    evidence = {"requests": total, "within": within, "base_rate": base_rate}
    limits = f"{NORMAL_MS:,} ms in normal hours, {PEAK_MS:,} ms at peak"
    if not total:
        return Verdict(LEVEL_KEPT, "unknown", "No request arrived.", evidence)
    if within == total:
        reason = f"Service level kept: all {total:,} requests were signed in time ({limits})."
        return Verdict(LEVEL_KEPT, "pass", reason, evidence)
    reason = f"Service level missed: {total - within:,} of {total:,} requests were not signed in time ({limits})."
    return Verdict(LEVEL_KEPT, "fail", reason, evidence)


def _at_peak(arrivals: NDArray[np.int64], base_rate: float) -> NDArray[np.bool_]:
    """Of each arrival whether the last second's worth of them took less time than at `base_rate`.

    Those of one moment arrive together. The first ones, with too few before them for a rate, never belong to a peak.
    """
    distances = math.ceil(base_rate)
    last = np.searchsorted(arrivals, arrivals, "right") - 1
    first = last - distances
    span_ns = arrivals - arrivals[np.maximum(first, 0)]
    return np.asarray((first >= 0) & (span_ns < distances / base_rate * 1e9 / (1 + _TOLERANCE)))


def _verdict(part: Part, base_rate: float) -> Verdict:
    total, within = part.requests, part.within
    evidence = {"requests": total, "within": within, "limit_ms": part.limit_ms, "base_rate": base_rate}
    if not total:
        return Verdict(part.name, "unknown", f"No request arrived {part.when}.", evidence)
    share = within * 1000 // total / 10  # Rounded down: 100 % are all of them.
    reason = (
        f"{within:,} of {total:,} requests that arrived {part.when} were signed within {part.limit_ms:,} ms "
        f"({share:.1f} %)."
    )
    return Verdict(part.name, "pass" if within == total else "fail", reason, evidence)


def live_verdicts(recorded: RecordedRun, events: Sequence[Event]) -> Iterator[Verdict]:
    """No key used twice, no request lost, key store unchanged; unknown where the run did not finish."""
    data = {event.name: event.data for event in events}
    for verdict in (
        _no_key_twice(recorded),
        _none_lost(recorded, data.get(END_EVENT)),
        _store_linked(data.get(STORE_VERIFIED)),
    ):
        yield replace(verdict, kind=VerdictKind.INTEGRITY)


def _no_key_twice(recorded: RecordedRun) -> Verdict:
    name, rows = "no key used twice", recorded.requests["key"]
    stored = rows[rows > 0]
    different, generated = len(np.unique(stored)), len(rows) - len(stored)
    evidence = {"requests": len(rows), "stored_keys": different, "generated": generated}
    if not len(rows):
        return Verdict(name, "unknown", "No request was signed.", evidence)
    if different < len(stored):
        reason = f"{len(stored):,} requests were signed with only {different:,} different keys of the key store."
        return Verdict(name, "fail", reason, evidence)
    reason = (
        f"{len(rows):,} requests were signed with as many keys: {different:,} stored ones, {generated:,} generated."
    )
    return Verdict(name, "pass", reason, evidence)


def _none_lost(recorded: RecordedRun, end: Mapping[str, Any] | None) -> Verdict:
    name = "every request answered or counted as dropped"
    if end is None:
        return Verdict(name, "unknown", "The run did not come to its end.")
    if not end["received"]:
        return Verdict(name, "unknown", "No request arrived.", end)
    tables = (recorded.requests, recorded.failures, recorded.drops)
    numbers = np.concatenate([table["request"] for table in tables])
    answered, failed, dropped = (len(table["request"]) for table in tables)
    different = len(np.unique(numbers))
    evidence = {**end, "different": different}
    lost = end["received"] - different
    twice = len(numbers) - different
    if end["unfinished"] and not twice:
        reason = f"The run was cancelled: {end['unfinished']:,} of {end['received']:,} requests had no answer yet."
        return Verdict(name, "unknown", reason, evidence)
    if lost or twice:
        reason = f"{lost:,} of {end['received']:,} requests have no answer, and {twice:,} have two."
        return Verdict(name, "fail", reason, evidence)
    refused = f", {failed:,} refused" if failed else ""
    reason = f"{end['received']:,} requests arrived: {answered:,} were signed{refused}, {dropped:,} dropped."
    return Verdict(name, "pass", reason, evidence)


def _store_linked(verified: Mapping[str, Any] | None) -> Verdict:
    name = "store linked"
    if verified is None:
        return Verdict(name, "unknown", "The key store was not checked: the run did not come to its end.")
    findings = list(verified["findings"])
    evidence = {"rows": verified["rows"], "findings": findings}
    if findings:
        return Verdict(name, "fail", f"The key store was changed: {findings[0]}", evidence)
    reason = f"All {verified['rows']:,} rows of the key store are as they were written, from the first to the last."
    return Verdict(name, "pass", reason, evidence)
