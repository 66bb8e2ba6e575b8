"""The rows of packets as columns: the same rows again, from memory and from a file, filtered and sorted."""

from __future__ import annotations

import zipfile
from pathlib import Path
from random import Random

import numpy as np
import pytest

from labconsole.errors import UserError
from labconsole_v2x.inspection.packet_rows import SORT_KEYS, PacketTable, finding_filter
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

TIME_NS = 1_700_000_000_000_000_000
DAY_NS = 86_400 * 10**9


def random_rows(count: int) -> list[PacketRow]:
    random = Random(count)
    choice = random.choice
    return [
        PacketRow(
            number * 2 + 1,
            choice((0, TIME_NS + random.randrange(10**9))),
            random.randrange(2000),
            choice(("CAM", "DENM", "", 'ITS-AID "9"')),
            choice((None, 0, 7, 2**32 - 1)),
            choice((None, Address(random.randbytes(6), random.randrange(32), random.random() < 0.5))),
            choice((b"", random.randbytes(8))),
            choice(("", "Lab root CA", "=1+1")),
            Checks(
                *(choice(list(SignatureState)), choice(list(ChainState))),
                *(choice(list(ProfileState)), choice(list(TimeState))),
                choice(((), ("first",), ("first", 'sec"ond'))),
            ),
            choice(list(Verdict)),
        )
        for number in range(count)
    ]


def test_rows_come_back_from_memory_and_file(tmp_path: Path) -> None:
    for count in (0, 1, 500):
        rows = random_rows(count)
        table = PacketTable.of(rows)
        table.write(tmp_path / f"{count}.npz")
        for each in (table, PacketTable.read(tmp_path / f"{count}.npz")):
            assert [each.row(index) for index in range(len(each))] == rows


@pytest.mark.parametrize("content", [b"", b"no numbers", b"PK\x05\x06" + bytes(18)])
def test_a_file_that_is_something_else_gives_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rows.npz"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"rows\.npz: inspect the capture again"):
        PacketTable.read(path)
    with pytest.raises(UserError, match=r"missing\.npz"):
        PacketTable.read(tmp_path / "missing.npz")


def test_pickled_objects_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.npz"
    np.savez(path, packets=np.array([{"a": 1}], object), tables=np.zeros(2, "u1"))
    assert zipfile.is_zipfile(path)
    with pytest.raises(UserError):
        PacketTable.read(path)


def test_sorting_keeps_the_order_of_equal_packets() -> None:
    rows = random_rows(300)
    rows[7:9] = [rows[7]._replace(time_ns=-9 * 10**18), rows[8]._replace(time_ns=9 * 10**18)]  # of a broken capture
    table = PacketTable.of(rows)
    every = table.matching("")
    order = list(Verdict)
    keys = {
        "number": lambda row: row.number,
        "time_ns": lambda row: row.time_ns,
        "source": lambda row: row.address.mac.hex(":") if row.address else "",
        "message": lambda row: row.message.casefold(),
        "size": lambda row: row.size,
        "signer": lambda row: row.signer.hex(),
        "root": lambda row: row.root.casefold(),
        "verdict": lambda row: order.index(row.verdict),
        "reason": lambda row: row.reason.casefold(),
    }
    assert set(keys) == set(SORT_KEYS)
    for name, key in keys.items():
        for descending in (False, True):
            found = [table.row(int(index)) for index in table.ordered(every, name, descending=descending)]
            assert found == sorted(rows, key=key, reverse=descending), name


def numbers(table: PacketTable, text: str) -> list[int]:
    return [table.row(int(index)).number for index in table.matching(text)]


def test_filter_finds_words_phrases_and_whole_cells() -> None:
    checks = Checks(SignatureState.VALID, reasons=("the ticket had expired",))
    both = checks._replace(reasons=(*checks.reasons, "generationTime is missing"))
    address = Address(b"\2\0\0\0\0\x2a", 5)
    late, valid = Verdict.TIME_NOT_VALID, Verdict.VALID
    rows = [
        PacketRow(1, 0, 100, "CAM", 42, address, b"\xab" * 8, "Lab root CA", checks, late),
        PacketRow(2, 0, 100, "DENM", 100, address, b"", "", both, late),
        PacketRow(100, 0, 100, "CAM", None, None, b"", "", Checks(), valid),
    ]
    table = PacketTable.of(rows)
    expected = {
        "": [1, 2, 100],
        "cam": [1, 100],
        "CAM valid": [1, 100],
        '="valid"': [100],
        '"ticket had"': [1, 2],
        '"had ticket"': [],
        "ticket had": [1, 2],
        "02:00:00:00:00:2a": [1, 2],
        "abab": [1],
        "lab": [1],
        "100": [2, 100],
        "42": [1],
        '="the ticket had expired"': [1],
        "elephant": [],
        '"': [],
        '=""': [1, 2, 100],
    }
    assert {text: numbers(table, text) for text in expected} == expected
    assert numbers(table, finding_filter(late, both.reasons[0])) == [1]
    assert numbers(table, finding_filter(late, rows[1].reason)) == [2]


def test_filter_of_a_finding_fits_names_with_quotes() -> None:
    reason = 'root a "b" ""c is not trusted'
    rows = [PacketRow(1, 0, 1, "CAM", None, None, b"", "", Checks(reasons=(reason,)), Verdict.CHAIN_INCOMPLETE)]
    assert numbers(PacketTable.of(rows), finding_filter(Verdict.CHAIN_INCOMPLETE, reason)) == [1]


def test_days_and_judgement_are_known() -> None:
    row = random_rows(1)[0]._replace(verdict=Verdict.VALID)
    days = [row._replace(time_ns=at_ns) for at_ns in (0, TIME_NS, TIME_NS + DAY_NS)]
    assert PacketTable.of(days).days and not PacketTable.of(days[:2]).days and not PacketTable.of(()).days
    assert PacketTable.of(days).judged
    assert not PacketTable.of([row._replace(verdict=Verdict.NOT_JUDGED)]).judged
