"""Values of a column of `BYTES` as spool and chunks hold them: one after the other, their lengths apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LENGTH = np.dtype("<u4")
"""How a length is stored."""


def lengths_of(values: list[Any]) -> NDArray[np.uint32]:
    """The lengths of these values."""
    return np.fromiter(map(len, values), LENGTH, len(values))


def split(raw: bytes, position: int, lengths: NDArray[np.uint32]) -> tuple[NDArray[Any], int]:
    """The values of these lengths in `raw` from `position` on, as an array of `bytes`, and where they end.

    Raises ValueError unless all of them are there.
    """
    ends = (position + np.cumsum(lengths, dtype=np.int64)).tolist()
    begins = [position, *ends]
    if begins[-1] > len(raw):
        raise ValueError(f"values of {begins[-1] - position} bytes are declared, {len(raw) - position} are there")
    values = np.empty(len(lengths), object)
    values[:] = [raw[begin:end] for begin, end in zip(begins, ends, strict=False)]
    return values, begins[-1]
