"""How many functions a piece of work calls: the same on a busy computer and an idle one, as its time is not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_in(work: Callable[[], object]) -> int:
    """The calls of functions, of Python and of C, that `work` makes in this thread; what it raises is raised."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls
