"""The evidence of use cases: packets, certificates, messages and decisions in the order in which they were recorded.

A verdict comes from it alone. It is stored with the run as a series and as a file of JSON lines, which
`labconsole v2x inspect` judges again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from numpy.typing import NDArray

from labconsole.model.series import BYTES, Column, Series
from labconsole_v2x.use_cases.catalogue import CODES

FORMAT = "lab console: evidence of V2X use cases"
VERSION = 1
MOST_OCTETS = 65_536
"""Of one record; PKI messages and packets have fewer."""
MOST_LINE_OCTETS = 4 * MOST_OCTETS
"""Of the line of a record, whose octets are in hexadecimal."""


class Kind(IntEnum):
    """The kinds of records, by the numbers under which they are stored: later ones are appended."""

    BEGUN = 0
    """The case was begun; `label` is the backend."""
    RECEIVER = 1
    """Receiver `number` was set up with the settings in `label` (JSON)."""
    ROOT = 2
    """Receiver `number` trusts the root certificate in `octets`; 0 is every other party."""
    KNOWN = 3
    """Receiver `number` was given the certificate in `octets`."""
    DISTRUSTED = 4
    """Receiver `number` distrusts the certificate whose HashedId8 is in `octets`."""
    SENT = 5
    """Packet `number` was sent in the Ethernet frame in `octets`; `label` says what it is."""
    RECEIVED = 6
    """Receiver `number` has judged the GeoNetworking packet in `octets`, which was sent as `label`: `result`."""
    MESSAGE = 7
    """A PKI or HTTP message, as on the wire: `label` says which."""
    OPENED = 8
    """What `label` has decrypted: `octets`."""
    CERTIFICATE = 9
    """A certificate that `label` got or issued."""
    DECISION = 10
    """What `label` has decided: `result`."""
    MEASURED = 11
    """The figure `label`: `result`."""
    NOT_TESTED = 12
    """The case cannot be tested: `result` is the reason."""
    FAULT = 13
    """The case broke off: `result` is the reason."""
    ENDED = 14
    """The case came to its end: `number` records are before this one."""


class Record(NamedTuple):
    """One record; `at_us` is ITS time in us, of the case's clock."""

    case: str
    kind: Kind
    at_us: int
    number: int = 0
    label: str = ""
    result: str = ""
    octets: bytes = b""


_TYPES = (str, Kind, int, int, str, str, bytes)

EVIDENCE = Series(
    "evidence",
    "The evidence of each use case",
    (
        Column("case", "u2", "", "Number of the case in the list of codes"),
        Column("kind", "u1", "", "Kind of the record"),
        Column("at_us", "i8", "us", "ITS time of the case's clock"),
        Column("number", "u4", "", "Number of the packet or receiver"),
        Column("label", BYTES, "", "What it is, or whose"),
        Column("result", BYTES, "", "Verdict, decision or figure"),
        Column("octets", BYTES, "", "Packet, certificate or message"),
    ),
)


class Evidence:
    """The records of one case."""

    def __init__(self, case: str, records: Iterable[Record] = ()) -> None:
        self.case = case
        self.records: list[Record] = list(records)

    def of(self, kind: Kind, label: str | None = None) -> list[Record]:
        """The records of a kind, or of a kind and label, in their order."""
        return [one for one in self.records if one.kind is kind and label in (None, one.label)]

    def received(self, label: str) -> list[Record]:
        """The last verdict of each receiver on each packet with this label."""
        return list({(one.number, one.octets): one for one in self.of(Kind.RECEIVED, label)}.values())

    def sent(self, label: str) -> int:
        """How many packets with this label were sent."""
        return len(self.of(Kind.SENT, label))

    def decisions(self, label: str) -> list[str]:
        """The decisions with this label."""
        return [one.result for one in self.of(Kind.DECISION, label)]

    def measured(self, label: str) -> list[float]:
        """The figures with this label."""
        return [float(one.result) for one in self.of(Kind.MEASURED, label)]


def columns_of(records: Sequence[Record]) -> dict[str, list[Any]]:
    """The records as the columns of `EVIDENCE`."""
    return {
        "case": [CODES.index(one.case) for one in records],
        "kind": [int(one.kind) for one in records],
        "at_us": [one.at_us for one in records],
        "number": [one.number for one in records],
        "label": [one.label.encode() for one in records],
        "result": [one.result.encode() for one in records],
        "octets": [one.octets for one in records],
    }


def of_table(table: Mapping[str, NDArray[Any]]) -> dict[str, Evidence]:
    """The evidence of each case by its code, from stored samples."""
    rows = zip(*(table[column.name].tolist() for column in EVIDENCE.columns), strict=True)
    return grouped(
        Record(CODES[case], Kind(kind), at_us, number, label.decode(), result.decode(), octets)
        for case, kind, at_us, number, label, result, octets in rows
    )


def grouped(records: Iterable[Record]) -> dict[str, Evidence]:
    """The evidence of each case by its code."""
    found: dict[str, Evidence] = {}
    for record in records:
        found.setdefault(record.case, Evidence(record.case)).records.append(record)
    return found


def header_line() -> bytes:
    """The first line of a file with evidence."""
    return _line({"format": FORMAT, "version": VERSION})


def encode_line(record: Record) -> bytes:
    """The line of a record."""
    values = {**record._asdict(), "kind": record.kind.name.lower(), "octets": record.octets.hex()}
    return _line({name: value for name, value in values.items() if value not in ("", 0)})


def is_evidence(octets: bytes) -> bool:
    """Whether a file that begins with these octets is one with evidence."""
    return octets.startswith(header_line()[: len(FORMAT) + 12])


def read_lines(lines: Iterable[bytes]) -> Iterator[Record]:
    """The records of a file. Raises ValueError: a line is not one of a record; its text is the reason."""
    for number, line in enumerate(lines, 1):
        try:
            values = json.loads(line)
            if number == 1:
                if values != {"format": FORMAT, "version": VERSION}:
                    raise ValueError("not evidence of this version")
                continue
            kind, octets = Kind[values.pop("kind").upper()], bytes.fromhex(values.pop("octets", ""))
            record = Record(kind=kind, octets=octets, **values)
            if record.case not in CODES or len(octets) > MOST_OCTETS:
                raise ValueError("an unknown case, or too many octets")
            if any(type(value) is not kind for value, kind in zip(record, _TYPES, strict=True)):
                raise ValueError("a value of another type")
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise ValueError(f"line {number}: {error}") from error
        yield record


def _line(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"
