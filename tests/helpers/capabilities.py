"""Runs a function without the rights of root (Linux), in a thread of its own: capabilities belong to a thread."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tests.helpers.forked_programs import programs_started

Result = TypeVar("Result")
_VERSION_3 = 0x20080522
_PR_CAPBSET_DROP, _LAST_CAPABILITY = 24, 63


def without_capabilities(function: Callable[[], Result]) -> Result:
    """The result of the function, or what it raises, in a thread that has given all capabilities (capset(2)) away.

    Processes that the thread starts cannot have them, either: they are no longer in its bounding set.
    """
    with programs_started(), ThreadPoolExecutor(1, initializer=_drop_all) as thread:
        return thread.submit(function).result()


def _drop_all() -> None:
    header, none = struct.pack("=Ii", _VERSION_3, 0), bytes(24)
    library = ctypes.CDLL(None, use_errno=True)
    for capability in range(_LAST_CAPABILITY + 1):
        library.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails for those that the kernel does not know
    if library.capset(header, none):
        raise OSError(ctypes.get_errno(), "capset")
