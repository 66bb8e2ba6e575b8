"""Runs that are repeated where a busy computer has disturbed them, as a queue does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_ATTEMPTS = 3


def repeated(attempt: Callable[[int], T], kept_up: Callable[[T], bool]) -> T:
    """The outcome of the first attempt (0, 1, 2) in which the computer kept up; otherwise that of the last one."""
    for number in range(_ATTEMPTS):
        outcome = attempt(number)
        if kept_up(outcome):
            break
    return outcome
