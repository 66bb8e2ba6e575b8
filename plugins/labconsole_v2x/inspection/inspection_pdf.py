"""An inspection as a report (PDF/A) that can be sent on: what was judged, with what, how, and the result."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from labconsole import __version__
from labconsole.model.operation import Tone as Meaning
from labconsole.output.charts import WIDE, Bar, bar_charts
from labconsole.output.report.document import (
    Align,
    Block,
    Bullets,
    Callout,
    Document,
    Fact,
    Figure,
    Head,
    Paragraph,
    Table,
    TextCell,
    Tone,
    section,
)
from labconsole.safe_text import shown
from labconsole_v2x.inspection.inspection_report import (
    address_text,
    issuers_text,
    messages_text,
    number_of,
    period,
    readable_time,
    station_ids_text,
    tone_of,
)
from labconsole_v2x.inspection.verdicts import ChainState, Inspection, Verdict

MOST_ROWS = 200
"""Rows of a table; a note says where there are more."""
_MOST_ROOTS = 20
_TONES = {Meaning.GOOD: Tone.GOOD, Meaning.BAD: Tone.BAD, Meaning.MUTED: Tone.MUTED, Meaning.WARNING: Tone.STRONG}
_MEANINGS = {
    Verdict.VALID: "The signature, the chain up to a trusted root, the profile and the time are as they should be.",
    Verdict.CHAIN_INCOMPLETE: "The signature is valid; no known certificates connect the ticket with a trusted root.",
    Verdict.PROFILE_BROKEN: "The signature is valid; the packet does not keep the profile or exceeds its permissions.",
    Verdict.TIME_NOT_VALID: "The signature is valid; message or certificates were not valid when it was captured.",
    Verdict.CHAIN_INVALID: "The signature is valid; a certificate of its chain breaks a rule or is not rightly signed.",
    Verdict.SIGNATURE_INVALID: "The packet is not what the holder of the ticket signed.",
    Verdict.UNKNOWN_SIGNER: "The ticket is not in the capture: nothing was verified.",
    Verdict.ENCRYPTED: "The content cannot be read without the recipient's key.",
    Verdict.UNSECURED: "The packet is not signed: it may come from anyone.",
    Verdict.MALFORMED: "The packet cannot be read.",
}
_METHOD = (
    "Certificates were learnt from the whole capture first; then each packet was judged with them and with the "
    "certificates that were given. Only the given roots are trusted.",
    "A valid signature shows which ticket signed the packet. It does not show who sent the packet: a recorded packet "
    "that is sent again has a valid signature, and repeated packets were not counted.",
    "Packets were judged at the time that the capture gives; whether its clock was right is not known.",
    "Revocation was not checked: no CRL was read.",
    "The contents of a CAM were decoded only where its flags show that they need a permission of their own.",
)


@dataclass(frozen=True)
class Source:
    """The capture and the settings of an inspection, as its report names them."""

    octets: int
    sha256: str
    roots: tuple[str, ...]
    """The trusted roots: names with their HashedId8."""
    clock_tolerance_s: float
    generated: datetime

    @classmethod
    def of(cls, path: Path, roots: Sequence[str], clock_tolerance_s: float) -> Source:
        """Read size and hash of the capture. Raises OSError."""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            octets = file.tell()
        return cls(octets, digest, tuple(roots), clock_tolerance_s, datetime.now(UTC))


def inspection_document(inspection: Inspection, source: Source, warnings: Sequence[str] = ()) -> Document:
    """Return the report on an inspection."""
    name, total = shown(inspection.name), len(inspection.rows)
    packets, stations = number_of(total, "GeoNetworking packet"), number_of(len(inspection.stations), "station")
    return Document(
        kind="Inspection of a V2X capture",
        title=name,
        lead=f"{packets} of {stations}, {_result(inspection)}.",
        author="",
        identity=f"SHA-256 {source.sha256[:16]}…",
        generated=source.generated,
        cover=tuple(_cover(inspection, source)),
        sections=(
            *section("Result", list(_summary(inspection, warnings))),
            *section("Findings", list(_findings(inspection))),
            *section("Certificates", list(_certificates(inspection))),
            *section("Stations", list(_stations(inspection))),
            *section("How the packets were judged", [Bullets(tuple(map(TextCell, _METHOD)))]),
        ),
    )


def _result(inspection: Inspection) -> str:
    valid, total = inspection.by_verdict().get(Verdict.VALID, 0), len(inspection.rows)
    if not total:
        return "nothing to judge"
    if valid == total and inspection.fault:
        return "all that could be read valid"
    return "all of them valid" if valid == total else f"{valid:,} of the packets valid ({valid / total:.1%})"


def _cover(inspection: Inspection, source: Source) -> Iterator[Fact]:
    yield Fact("Capture", shown(inspection.name))
    yield Fact("Size", f"{source.octets:,} octets")
    yield Fact("SHA-256", source.sha256, Tone.CODE)
    yield Fact("Captured", period(inspection) or "the capture gives no times")
    frames = number_of(inspection.other_frames, "frame")
    yield Fact("Packets", f"{len(inspection.rows):,}, and {frames} of other protocols")
    roots = "; ".join(source.roots[:_MOST_ROOTS]) or "none"
    more = len(source.roots) - _MOST_ROOTS
    yield Fact("Trusted roots", f"{roots}; {more} more" if more > 0 else roots)
    yield Fact("Clock tolerance", f"{source.clock_tolerance_s:g} s")
    yield Fact("Inspected with", f"Lab console {__version__}, cryptography {version('cryptography')}")


def _summary(inspection: Inspection, warnings: Sequence[str]) -> Iterator[Block]:
    if warnings:
        yield Callout("Read this first", tuple(warnings))
    counts = inspection.by_verdict()
    total = len(inspection.rows)
    if not total:
        yield Paragraph("The capture has no GeoNetworking packets.")
        return
    yield Table(
        "Packets by verdict",
        (
            Head("Verdict", align=Align.LEFT, share=1.5),
            Head("Packets", share=0.8),
            Head("Share", share=0.7),
            Head("What it says", align=Align.LEFT, share=4.0),
        ),
        tuple(
            (
                TextCell(verdict.value, _TONES[tone_of(verdict)]),
                TextCell(f"{count:,}"),
                TextCell(f"{count / total:.1%}"),
                TextCell(_MEANINGS[verdict]),
            )
            for verdict, count in counts.items()
        ),
        ("A packet with several findings is counted once, by the gravest; the findings below name all of them.",),
    )
    words = "; ".join(f"{verdict} {count:,}" for verdict, count in counts.items())
    bars = [Bar(verdict.value, count) for verdict, count in counts.items()]
    [chart] = bar_charts("Packets", "", bars, WIDE)
    yield Figure(chart, f"Bar chart of packets by verdict: {words}", "Packets by verdict")


def _findings(inspection: Inspection) -> Iterator[Block]:
    findings = list(inspection.findings())
    if not findings:
        yield Paragraph("None: no packet has a finding with a reason.")
        return
    yield Table(
        "What is not as it should be",
        (
            Head("Verdict", align=Align.LEFT, share=1.5),
            Head("Reason", align=Align.LEFT, share=4.0),
            Head("Packets", share=0.8),
            Head("First packet", "number in the capture", share=0.9),
        ),
        tuple(
            (
                TextCell(verdict.value, _TONES[tone_of(verdict)]),
                TextCell(shown(reason)),
                TextCell(f"{count:,}"),
                TextCell(f"{first:,}"),
            )
            for verdict, reason, count, first in findings[:MOST_ROWS]
        ),
        _more(len(findings), "findings"),
    )


def _certificates(inspection: Inspection) -> Iterator[Block]:
    if not inspection.chains:
        yield Paragraph("No packet has a signer whose certificate is known.")
        return
    tones = {ChainState.COMPLETE: Tone.GOOD, ChainState.INVALID: Tone.BAD}
    yield Table(
        "Tickets of the signers, and the chains that lead from them to a root",
        (
            Head("Issued by", "name (HashedId8), up to the root", Align.LEFT, 3.6),
            Head("Chain", align=Align.LEFT, share=2.2),
            Head("Tickets", share=0.7),
            Head("Packets", share=0.8),
        ),
        tuple(
            (
                TextCell(issuers_text(chain.issuers)),
                TextCell(
                    chain.state.value,
                    tones.get(chain.state, Tone.STRONG),
                    ((shown(chain.reason), Tone.MUTED),) if chain.reason else (),
                ),
                TextCell(f"{chain.tickets:,}"),
                TextCell(f"{chain.packets:,}"),
            )
            for chain in inspection.chains[:MOST_ROWS]
        ),
        _more(len(inspection.chains), "chains"),
    )


def _stations(inspection: Inspection) -> Iterator[Block]:
    stations = sorted(inspection.stations.values(), key=lambda station: -station.packets)
    if not stations:
        yield Paragraph("No packet has a source address that can be read.")
        return
    yield Table(
        "Stations by their GeoNetworking address",
        (
            Head("GN address", align=Align.LEFT, share=1.7),
            Head("Station ID", align=Align.LEFT, share=1.0),
            Head("Packets", "signature valid", share=0.9),
            Head("Messages", align=Align.LEFT, share=1.3),
            Head("Tickets", share=0.7),
            Head("First and last", "UTC", Align.LEFT, 3.0),
        ),
        tuple(
            (
                TextCell(address_text(station.address)),
                TextCell(station_ids_text(station.station_ids)),
                TextCell(
                    f"{station.packets:,}",
                    details=((f"{station.valid_signatures / station.packets:.1%}", Tone.MUTED),),
                ),
                TextCell(messages_text(station.messages)),
                TextCell(f"{len(station.signers):,}"),
                TextCell(readable_time(station.first_ns), details=((readable_time(station.last_ns), Tone.PLAIN),)),
            )
            for station in stations[:MOST_ROWS]
        ),
        (
            "An address is what a packet says of itself. Stations change theirs with their tickets: one vehicle may be "
            "several stations here.",
            *_more(len(stations), "stations"),
        ),
    )


def _more(count: int, what: str) -> tuple[str, ...]:
    return (f"{count - MOST_ROWS:,} more {what}: the JSON output lists them.",) if count > MOST_ROWS else ()
