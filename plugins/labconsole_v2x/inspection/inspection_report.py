"""An inspection as tables for a person, as plain JSON for a script, and as a CSV file with a row for each packet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from labconsole.model.operation import TextTable, Tone, TonedText
from labconsole.output.export_file import write_table
from labconsole.safe_text import shown
from labconsole_v2x.inspection.verdicts import ChainUse, Inspection, Station, Verdict
from labconsole_v2x.messages.geonetworking import Address

MOST_ROWS = 50
"""Rows of a table for a person; the rest is in JSON (stations, findings) and CSV (packets)."""

_COLUMNS = (
    *("packet", "time", "time [ns]", "size [B]", "message", "station ID", "GN address", "signer"),
    *("signature", "chain", "chain up to", "profile", "time valid", "verdict", "reason"),
)
_NS = 1_000_000_000
_TONES = {
    Verdict.NOT_JUDGED: Tone.MUTED,
    Verdict.VALID: Tone.GOOD,
    Verdict.CHAIN_INCOMPLETE: Tone.WARNING,
    Verdict.UNKNOWN_SIGNER: Tone.WARNING,
    Verdict.ENCRYPTED: Tone.MUTED,
    Verdict.UNSECURED: Tone.MUTED,
}
_SHOWN_IDS = 3


def write_packets_csv(inspection: Inspection, path: Path) -> Path:
    """Write a row for each packet to a CSV file (RFC 4180, UTF-8), and return its path. Raises ExportError."""
    return write_table(path, _COLUMNS, _cells(inspection))


def _cells(inspection: Inspection) -> Iterator[Sequence[Any]]:
    for row in inspection.rows:
        checks = row.checks
        station_id = "" if row.station_id is None else row.station_id
        message = (row.message, station_id, address_text(row.address), row.signer.hex())
        found = (checks.signature.value, checks.chain.value, row.root, checks.profile.value, checks.time.value)
        yield (
            *(row.number, time_text(row.time_ns), row.time_ns, row.size),
            *(*message, *found, row.verdict.value, row.reason),
        )


def report(inspection: Inspection) -> tuple[str | TextTable, ...]:
    """The summary for a person: counts by verdict, reasons, stations."""
    total = len(inspection.rows)
    parts: list[str | TextTable] = [
        f"{shown(inspection.name)}: {number_of(total, 'GeoNetworking packet')} of "
        f"{number_of(len(inspection.stations), 'station')}, {number_of(inspection.other_frames, 'other frame')}, "
        f"{number_of(inspection.certificates, 'certificate')}{f', {span}' if (span := period(inspection)) else ''}."
    ]
    if not total:
        return tuple(parts)
    verdicts = tuple(
        (TonedText(verdict.value, tone_of(verdict)), f"{count:,}", f"{count / total:.1%}")
        for verdict, count in inspection.by_verdict().items()
    )
    parts += ["", TextTable(("Verdict", "Packets", "Share"), verdicts)]
    if findings := list(inspection.findings()):
        reasons = tuple(
            (verdict.value, shown(reason), f"{count:,}", f"{first:,}")
            for verdict, reason, count, first in findings[:MOST_ROWS]
        )
        parts += ["", TextTable(("Verdict", "Reason", "Packets", "First packet"), reasons)]
        parts += _more(len(findings), "reasons")
    if inspection.chains:
        chains = tuple(map(_chain_cells, inspection.chains[:MOST_ROWS]))
        parts += ["", TextTable(("Tickets issued by", "Chain", "Tickets", "Packets"), chains)]
        parts += _more(len(inspection.chains), "chains")
    stations = sorted(inspection.stations.values(), key=lambda station: -station.packets)
    headings = (
        "GN address",
        "Station ID",
        "Packets",
        "Messages",
        "Tickets",
        "Signature valid",
        "First (UTC)",
        "Last (UTC)",
    )
    return (
        *parts,
        "",
        TextTable(headings, tuple(map(_station_cells, stations[:MOST_ROWS]))),
        *_more(len(stations), "stations"),
    )


def _more(count: int, what: str) -> list[str]:
    return [f"{count - MOST_ROWS:,} more {what}: the JSON output lists them."] if count > MOST_ROWS else []


def issuers_text(issuers: Iterable[str]) -> str:
    """The issuers of tickets, from the authorization authority up to the root."""
    return ", under ".join(map(shown, issuers)) or "unknown"


def _chain_cells(chain: ChainUse) -> tuple[str, ...]:
    state = f"{chain.state}: {shown(chain.reason)}" if chain.reason else chain.state.value
    return issuers_text(chain.issuers), state, f"{chain.tickets:,}", f"{chain.packets:,}"


def _station_cells(station: Station) -> tuple[str, ...]:
    return (
        address_text(station.address),
        station_ids_text(station.station_ids),
        f"{station.packets:,}",
        messages_text(station.messages),
        str(len(station.signers)),
        f"{station.valid_signatures / station.packets:.1%}",
        readable_time(station.first_ns),
        readable_time(station.last_ns),
    )


def report_data(inspection: Inspection) -> dict[str, Any]:
    """The same as plain JSON, with all stations and findings; times are Unix times in ns, null where unknown."""
    return {
        "capture": inspection.name,
        "packets": len(inspection.rows),
        "other_frames": inspection.other_frames,
        "certificates": inspection.certificates,
        "roots": list(inspection.roots),
        "complete": not inspection.fault,
        "fault": inspection.fault or None,
        "verdicts": {verdict.value: count for verdict, count in inspection.by_verdict().items()},
        "findings": [
            {"verdict": verdict.value, "reason": reason, "packets": count, "first_packet": first}
            for verdict, reason, count, first in inspection.findings()
        ],
        "chains": [asdict(chain) for chain in inspection.chains],
        "stations": [
            {
                "address": address_text(station.address),
                "station_ids": sorted(station.station_ids),
                "tickets": sorted(signer.hex() for signer in station.signers),
                "messages": dict(station.messages),
                "packets": station.packets,
                "valid_signatures": station.valid_signatures,
                "first_ns": station.first_ns or None,
                "last_ns": station.last_ns or None,
            }
            for station in inspection.stations.values()
        ],
    }


def time_text(time_ns: int) -> str:
    """A Unix time as RFC 3339 has it, in UTC with ns; empty where it is unknown or after the year 9999."""
    try:
        whole = datetime.fromtimestamp(time_ns // _NS, UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{time_ns % _NS:09}Z" if time_ns else ""


def readable_time(time_ns: int) -> str:
    """A Unix time in UTC for a person, to the ms; empty where it is unknown."""
    return time_text(time_ns)[:23].replace("T", " ")


def address_text(address: Address | None) -> str:
    """The MAC address of a GeoNetworking address, as Wireshark shows it; empty for None."""
    return address.mac.hex(":") if address else ""


def tone_of(verdict: Verdict) -> Tone:
    """The tone in which a verdict is shown."""
    return _TONES.get(verdict, Tone.BAD)


def station_ids_text(station_ids: Collection[int]) -> str:
    """The lowest IDs of a station, and the number of the others."""
    lowest, more = ", ".join(map(str, sorted(station_ids)[:_SHOWN_IDS])), len(station_ids) - _SHOWN_IDS
    return f"{lowest} and {more} more" if more > 0 else lowest


def messages_text(messages: Mapping[str, int]) -> str:
    """The messages of a station with their numbers, the most frequent first."""
    return ", ".join(f"{name or 'unreadable'} {count:,}" for name, count in Counter(messages).most_common())


def period(inspection: Inspection) -> str:
    """The times of the first and the last packet; empty where the file gives none."""
    times = [row.time_ns for row in inspection.rows if row.time_ns]
    if not times:
        return ""
    first, last = readable_time(min(times)), readable_time(max(times))
    date = len("2004-01-01 ")
    return f"{first} to {last[date:] if first[:date] == last[:date] else last} (UTC)"


def number_of(count: int, what: str) -> str:
    """A number with a noun in singular or plural."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
