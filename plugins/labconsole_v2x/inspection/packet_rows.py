"""The rows of many packets as columns: some 40 octets a packet, filtered and sorted in milliseconds, kept in a file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from labconsole.errors import UserError
from labconsole.output.export_file import complete_file
from labconsole.safe_text import shown
from labconsole_v2x.inspection.inspection_report import address_text
from labconsole_v2x.inspection.verdicts import (
    ChainState,
    Checks,
    PacketRow,
    ProfileState,
    SignatureState,
    TimeState,
    Verdict,
)
from labconsole_v2x.messages.geonetworking import Address

Indices = NDArray[np.intp]
MOST_PACKETS = 500_000
"""Packets that the window lists: those that it filters and sorts without a pause."""
_NO_STATION = -1
_ROW = np.dtype(
    [
        *(("number", "u4"), ("time_ns", "i8"), ("size", "u4"), ("station_id", "i8"), ("message", "u4")),
        *(("source", "u4"), ("signer", "u4"), ("root", "u4"), ("finding", "u4")),
    ]
)
"""A packet; the columns from `message` on are the number of an entry in the table of that name."""
_TERM = re.compile(r'(=?)"((?:[^"]|"")*)"|(\S+)')
_ORDER = {verdict: place for place, verdict in enumerate(Verdict)}

SORT_KEYS = ("number", "time_ns", "source", "message", "size", "signer", "root", "verdict", "reason")
"""What the packets can be sorted by."""


class PacketTable:
    """Rows of packets; an index counts them from 0 in the order in which they were captured."""

    def __init__(self, rows: NDArray[np.void], tables: dict[str, list[Any]]) -> None:
        self._rows = rows
        self._tables = tables
        self._messages: list[str] = tables["message"]
        self._sources = [_address(text) for text in tables["source"]]
        self._signers: list[str] = tables["signer"]
        self._roots: list[str] = tables["root"]
        self._findings = [_finding(entry) for entry in tables["finding"]]

    @classmethod
    def of(cls, rows: Iterable[PacketRow]) -> Self:
        """Return the table of these rows."""
        tables: dict[str, dict[Any, int]] = {name: {} for name in ("message", "source", "signer", "root", "finding")}

        def entry(name: str, value: object) -> int:
            table = tables[name]
            return table.setdefault(value, len(table))

        columns = np.fromiter(
            (
                (
                    *(row.number, row.time_ns, row.size, _NO_STATION if row.station_id is None else row.station_id),
                    *(entry("message", row.message), entry("source", row.address), entry("signer", row.signer)),
                    *(entry("root", row.root), entry("finding", (row.checks, row.verdict))),
                )
                for row in rows
            ),
            _ROW,
        )
        plain: dict[str, Callable[[Any], Any]] = {
            "source": lambda address: address and f"{address.mac.hex()} {address.station_type} {int(address.manual)}",
            "signer": bytes.hex,
            "finding": lambda finding: [*finding[0], finding[1]],
        }
        return cls(columns, {name: list(map(plain.get(name, str), table)) for name, table in tables.items()})

    def write(self, path: Path) -> None:
        """Write it as NumPy's arrays `packets` and `tables` (JSON in UTF-8). Raises ExportError."""
        tables = np.frombuffer(json.dumps(self._tables).encode(), "u1")
        with complete_file(path) as partial, partial.open("xb") as file:
            np.savez_compressed(file, packets=self._rows, tables=tables)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the table of a file. Raises UserError: it cannot be read, or is something else."""
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return cls(arrays["packets"].astype(_ROW, casting="no"), json.loads(arrays["tables"].tobytes()))
        except (OSError, ValueError, TypeError, LookupError, EOFError, BadZipFile) as error:
            raise UserError(
                f"The rows of the packets cannot be read from {shown(path.name)}: inspect the capture again."
            ) from error

    def __len__(self) -> int:
        """Return the number of packets."""
        return len(self._rows)

    def row(self, index: int) -> PacketRow:
        """Return a packet's row."""
        number, time_ns, size, station_id, message, source, signer, root, finding = self._rows[index].item()
        checks, verdict = self._findings[finding]
        return PacketRow(
            *(number, time_ns, size, self._messages[message], None if station_id == _NO_STATION else station_id),
            *(self._sources[source], bytes.fromhex(self._signers[signer]), self._roots[root], checks, verdict),
        )

    @property
    def judged(self) -> bool:
        """Whether the packets were inspected."""
        return all(verdict is not Verdict.NOT_JUDGED for _, verdict in self._findings)

    @property
    def days(self) -> bool:
        """Whether the packets are of more than one day (UTC)."""
        times = self._rows["time_ns"][self._rows["time_ns"] > 0]
        return bool(len(times)) and int(times.min()) // 86_400_000_000_000 != int(times.max()) // 86_400_000_000_000

    def matching(self, text: str) -> Indices:
        """Return the packets in which each term of a filter occurs.

        A term is a word, a phrase in quotes ("signature invalid"), or with = before the quotes all of a cell.
        """
        found = np.ones(len(self), bool)
        for whole, phrase, word in _TERM.findall(text):
            term = (phrase.replace('""', '"') or word).casefold()
            if term:
                found &= self._with(term, bool(whole))
        return np.flatnonzero(found)

    def _with(self, term: str, whole: bool) -> NDArray[np.bool_]:
        rows = self._rows

        def fits(texts: Sequence[str]) -> NDArray[np.bool_]:
            return np.fromiter((term == one if whole else term in one for one in texts), bool, len(texts))

        found: NDArray[np.bool_] = np.zeros(len(self), bool)
        for name, texts in self._texts.items():
            found |= fits(texts)[rows["finding" if name in ("verdict", "reason") else name]]
        if term.isdecimal() and len(term) < 19:
            found |= (rows["number"] == int(term)) | (rows["station_id"] == int(term))
        return found

    def ordered(self, indices: Indices, key: str, *, descending: bool = False) -> Indices:
        """Return these packets sorted by one of `SORT_KEYS`; equal ones keep their order."""
        if key == "verdict":
            values = _ranks([_ORDER[verdict] for _, verdict in self._findings])[self._rows["finding"]]
        elif key in self._texts:
            texts = self._texts[key]
            ranks = {text: rank for rank, text in enumerate(sorted(set(texts)))}
            places = _ranks([ranks[text] for text in texts])
            values = places[self._rows["finding" if key == "reason" else key]]
        else:
            values = self._rows[key].astype(int)
        chosen = values[indices]
        if descending:
            chosen = ~chosen  # reverses signed and unsigned ones without an overflow
        return indices[np.argsort(chosen, kind="stable")]

    @cached_property
    def _texts(self) -> dict[str, list[str]]:
        """The entries of the tables as they are filtered and sorted; verdict and reason are of the findings."""
        texts: dict[str, Iterable[str]] = {
            "message": self._messages,
            "source": map(address_text, self._sources),
            "signer": self._signers,
            "root": self._roots,
            "verdict": (verdict for _, verdict in self._findings),
            "reason": ("; ".join(checks.reasons) for checks, _ in self._findings),
        }
        return {name: [text.casefold() for text in entries] for name, entries in texts.items()}


def finding_filter(verdict: str, reason: str) -> str:
    """Return the filter for the packets of a finding."""
    return " ".join('="{}"'.format(text.replace('"', '""')) for text in (verdict, reason))


def _ranks(values: Sequence[int]) -> NDArray[np.integer[Any]]:
    """Numbers from 0 on in the smallest type that holds them: NumPy sorts 16 bits in a tenth of the time."""
    return np.array(values, np.min_scalar_type(max(values, default=0)))


def _address(text: str | None) -> Address | None:
    if text is None:
        return None
    mac, station_type, manual = text.split()
    return Address(bytes.fromhex(mac), int(station_type), manual == "1")


def _finding(entry: Sequence[Any]) -> tuple[Checks, Verdict]:
    signature, chain, profile, time, reasons, verdict = entry
    states = SignatureState(signature), ChainState(chain), ProfileState(profile), TimeState(time)
    return Checks(*states, tuple(reasons)), Verdict(verdict)
