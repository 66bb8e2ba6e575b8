"""Damaged copies of a file: bytes turned, cut, doubled, moved and lengths changed, the same ones for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

_TELLING_BYTES = bytes(
    (0x00, 0x01, 0x02, 0x03, 0x05, 0x06, 0x0C, 0x13, 0x16, 0x30, 0x31, 0x7F, 0x80, 0x81, 0x82, 0x84, 0xFF)
)
"""Tags and lengths of DER (X.690), and bounds."""


def tenth_and_all(count: int) -> Sequence[Any]:
    """Numbers of copies for a test's parameter: the first tenth of the series in CI, all of it in the nightly set."""
    return [pytest.param(count // 10, id="tenth"), pytest.param(count, id="all", marks=pytest.mark.nightly)]


def mutations(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """`count` damaged copies of `data`, each with one to four faults."""
    chance = random.Random(seed)
    for _ in range(count):
        mutated = bytearray(data)
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            chance.choice(_FAULTS)(mutated, chance)
        yield bytes(mutated)


def _turn_bit(data: bytearray, chance: random.Random) -> None:
    data[_somewhere(data, chance)] ^= 1 << chance.randrange(8)


def _set_byte(data: bytearray, chance: random.Random) -> None:
    data[_somewhere(data, chance)] = chance.choice(_TELLING_BYTES)


def _step_byte(data: bytearray, chance: random.Random) -> None:
    at = _somewhere(data, chance)
    data[at] = (data[at] + chance.choice((1, -1))) % 256


def _cut_end(data: bytearray, chance: random.Random) -> None:
    del data[max(1, _somewhere(data, chance)) :]


def _drop_slice(data: bytearray, chance: random.Random) -> None:
    at = _somewhere(data, chance)
    if len(data) > 16:
        del data[at : at + chance.randrange(1, 8)]


def _double_slice(data: bytearray, chance: random.Random) -> None:
    at = _somewhere(data, chance)
    data[at:at] = data[at : at + chance.randrange(1, 40)]


def _insert(data: bytearray, chance: random.Random) -> None:
    at = _somewhere(data, chance)
    data[at:at] = chance.randbytes(chance.randrange(1, 5))


def _swap_slices(data: bytearray, chance: random.Random) -> None:
    size = chance.randrange(1, 16)
    one, other = _somewhere(data, chance), _somewhere(data, chance)
    data[one : one + size], data[other : other + size] = data[other : other + size], data[one : one + size]


def _somewhere(data: bytearray, chance: random.Random) -> int:
    return chance.randrange(len(data))


_FAULTS: tuple[Callable[[bytearray, random.Random], None], ...] = (
    _turn_bit,
    _set_byte,
    _set_byte,
    _step_byte,
    _cut_end,
    _drop_slice,
    _double_slice,
    _insert,
    _swap_slices,
)
