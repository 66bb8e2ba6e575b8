"""What a live run must hold besides its service level: no key used twice, no request lost, the key store linked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from labconsole.model.trial import Event, Verdict, VerdictKind
from labconsole_keypool.results.recorded_run import Recorded
from labconsole_keypool.service.evidence import STORE_VERIFIED
from labconsole_keypool.service.service_role import END_EVENT


def live_verdicts(recorded: Recorded, events: Sequence[Event]) -> Iterator[Verdict]:
    """All three; unknown where the run did not come to its end."""
    data = {event.name: event.data for event in events}
    for verdict in (
        _no_key_twice(recorded),
        _none_lost(recorded, data.get(END_EVENT)),
        _store_linked(data.get(STORE_VERIFIED)),
    ):
        yield replace(verdict, kind=VerdictKind.INTEGRITY)


def _no_key_twice(recorded: Recorded) -> Verdict:
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


def _none_lost(recorded: Recorded, end: Mapping[str, Any] | None) -> Verdict:
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
