"""Column chunks: what goes in comes out, and the hash chain binds it."""

from __future__ import annotations

import numpy as np
import pytest
import zstandard

from labconsole.model.series import BYTES, Column
from labconsole.store import chunks

COLUMNS = (Column("t", "i8", "ns", "Time"), Column("n", "u2", "", "Number"), Column("x", "f8", "ms", "Value"))


def values(rows: int) -> dict[str, np.ndarray]:
    return {
        "t": np.arange(rows, dtype="i8") * -(2**40),
        "n": np.arange(rows, dtype="u2"),
        "x": np.array([np.nan, np.inf, -0.0, 1e-300, *range(rows)], "f8")[:rows],
    }


@pytest.mark.parametrize("rows", [0, 1, 3, 4096])
def test_decoding_gives_back_every_value(rows: int) -> None:
    given = values(rows)
    decoded = chunks.decode(COLUMNS, rows, chunks.encode(COLUMNS, rows, given))
    for name, array in given.items():
        np.testing.assert_array_equal(decoded[name], array)


def test_big_endian_and_strided_columns_are_stored_alike() -> None:
    given = values(50)
    other = {"t": given["t"].astype(">i8"), "n": np.repeat(given["n"], 2)[::2], "x": given["x"]}
    assert chunks.encode(COLUMNS, 50, other) == chunks.encode(COLUMNS, 50, given)


def test_counters_and_times_shrink_to_a_fraction() -> None:
    rows = 4096
    given = {"t": 10**15 + np.arange(rows) * 20_000, "n": np.arange(rows), "x": np.zeros(rows)}
    assert len(chunks.encode(COLUMNS, rows, given)) < rows * 18 / 5


def test_columns_of_unequal_length_or_unknown_name_are_refused() -> None:
    short = values(10) | {"n": np.arange(9)}
    with pytest.raises(chunks.ChunkError, match="10 rows"):
        chunks.encode(COLUMNS, 10, short)
    with pytest.raises(chunks.ChunkError, match="needed"):
        chunks.encode(COLUMNS, 10, values(10) | {"more": np.arange(10)})


def test_a_payload_of_another_size_is_refused_before_it_is_unpacked() -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(50_000_000))
    with pytest.raises(chunks.ChunkError, match="does not hold"):
        chunks.decode(COLUMNS, 10, bomb)
    with pytest.raises(chunks.ChunkError):
        chunks.decode(COLUMNS, 10, b"not zstd at all")


def test_the_chain_depends_on_all_parts_of_a_chunk() -> None:
    first = chunks.first_link("run", "sender", "messages", COLUMNS)
    link = chunks.next_link(first, 0, 10, b"payload")
    others = {
        chunks.next_link(first, 1, 10, b"payload"),
        chunks.next_link(first, 0, 11, b"payload"),
        chunks.next_link(first, 0, 10, b"Payload"),
        chunks.next_link(chunks.first_link("run", "receiver", "messages", COLUMNS), 0, 10, b"payload"),
        chunks.next_link(chunks.first_link("other", "sender", "messages", COLUMNS), 0, 10, b"payload"),
        chunks.next_link(chunks.first_link("run", "sender", "messages", COLUMNS[:2]), 0, 10, b"payload"),
    }
    assert len(others) == 6
    assert link not in others


PACKETS = (Column("packet", BYTES, "", ""), Column("t", "i8", "ns", "Time"), Column("answer", BYTES, "", ""))


def packets(rows: int) -> dict[str, np.ndarray]:
    found = {name: np.empty(rows, object) for name in ("packet", "answer")}
    found["packet"][:] = [bytes([number % 256]) * (number % 700) for number in range(rows)]
    found["answer"][:] = [b"\x00" * (number % 3) for number in range(rows)]
    return found | {"t": np.arange(rows, dtype="i8")}


@pytest.mark.parametrize("rows", [0, 1, 3, 4096])
def test_values_of_any_length_are_given_back(rows: int) -> None:
    given = packets(rows)
    decoded = chunks.decode(PACKETS, rows, chunks.encode(PACKETS, rows, given))
    assert {name: array.tolist() for name, array in decoded.items()} == {
        name: given[name].tolist() for name in ("packet", "t", "answer")
    }


def test_values_that_are_not_bytes_are_refused() -> None:
    for value in ("text", 5, None):
        with pytest.raises(chunks.ChunkError, match="column answer holds values that are not bytes"):
            chunks.encode(PACKETS, 1, packets(1) | {"answer": np.array([value], object)})


def test_more_values_than_a_chunk_holds_are_refused() -> None:
    large = np.array([bytes(33 * 2**20)] * 2, object)
    with pytest.raises(chunks.ChunkError, match="more than the 67,108,864 bytes of a chunk"):
        chunks.encode(PACKETS, 2, packets(2) | {"packet": large})


def payload(*parts: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(b"".join(parts))


@pytest.mark.parametrize(
    ("damaged", "sentence"),
    [
        (payload(b"\x02\0\0\0", b"a", bytes(8), b"\0\0\0\0"), "column answer"),
        (payload(b"\xff\xff\xff\xff", b"a", bytes(8), b"\0\0\0\0"), "column packet: values of 4294967295 bytes"),
        (payload(b"\x01\0\0\0", b"a", bytes(8), b"\0\0\0\0", b"more"), "of which its rows are 17"),
        (payload(b"\x09\0\0\0", b"a", bytes(8), b"\0\0\0\0"), "column t is not whole"),
        (payload(b"\x01\0\0\0", b"a"), "does not hold 1 rows"),
        (payload(bytes(65 * 2**20)), "does not hold 1 rows"),
    ],
)
def test_lengths_that_do_not_fit_the_payload_are_refused(damaged: bytes, sentence: str) -> None:
    with pytest.raises(chunks.ChunkError, match=sentence):
        chunks.decode(PACKETS, 1, damaged)


def test_a_chunk_of_many_empty_values_is_refused_before_they_are_made() -> None:
    """2,000,000 empty values are a kilobyte here, and 100 MB as objects."""
    columns = PACKETS[:1]
    with pytest.raises(chunks.ChunkError, match="does not hold"):
        chunks.decode(columns, 2_000_000, payload(bytes(8_000_000)))


def test_a_piece_is_compressed_where_that_makes_it_shorter() -> None:
    for content in (b"", b"x", bytes(100_000), np.random.default_rng(1).bytes(100_000)):
        packed = chunks.pack(content)
        assert chunks.unpack(len(content), packed) == content
        assert len(packed) <= len(content)
    assert len(chunks.pack(bytes(100_000))) < 100
    for size, damaged in ((5, payload(bytes(50))), (50, b"no zstd frame"), (2**40, payload(bytes(50)))):
        with pytest.raises(chunks.ChunkError):
            chunks.unpack(size, damaged)
