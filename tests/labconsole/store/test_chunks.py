"""Column chunks: what goes in comes out, and the hash chain binds it."""

from __future__ import annotations

import numpy as np
import pytest
import zstandard

from labconsole.store import chunks
from labconsole.trial import Column

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


def test_the_chain_depends_on_everything_that_a_chunk_says() -> None:
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
