"""The search for the highest rate that keeps a limit: doubles, then halves the interval, then confirms."""

from __future__ import annotations

import math

LOWEST_RATE, HIGHEST_RATE = 5.0, 1_000_000.0
"""Messages per second of each sender; the shortest step has two messages of the lowest that count."""
_PRECISION = 1.1
"""The search ends when the lowest rate that failed is at most so many times the highest one that passed."""
_ATTEMPTS = 2
"""A rate has failed when it failed so often: one stall of a busy computer is not the rate's fault."""
_MOST_STEPS = 40


class RateSearch:
    """Which rate to try next, from whether those before kept the limit.

    A rate that was found has passed twice: once in the search and once at its end.
    """

    def __init__(self, first: float) -> None:
        """`first` is the rate to begin with, messages per second."""
        self._next: float | None = min(max(first, LOWEST_RATE), HIGHEST_RATE)
        self._passed: list[float] = []
        """Rates that kept the limit, in rising order."""
        self._failed = math.inf
        self._fails = 0
        self._confirming = False
        self.steps = 0

    @property
    def next(self) -> float | None:
        """The rate of the next step; None: the search is over."""
        return self._next if self.steps < _MOST_STEPS else None

    @property
    def over(self) -> bool:
        """Whether the search came to its end, rather than to the most steps."""
        return self._next is None

    @property
    def found(self) -> float:
        """The highest rate that kept the limit; 0: none did."""
        return self._passed[-1] if self._passed else 0.0

    def record(self, passed: bool) -> None:
        """The rate `next` was tried."""
        assert self._next is not None
        rate, self.steps = self._next, self.steps + 1
        if passed:
            self._fails = 0
            if self._confirming:
                self._next = None
                return
            self._passed.append(rate)
            self._next = self._higher(rate)
            return
        self._fails += 1
        if self._fails < _ATTEMPTS:
            return
        self._fails, self._failed = 0, rate
        if self._confirming:  # it passed once, and that was luck
            self._passed.pop()
            self._confirming = False
        self._next = self._lower(rate)

    def _higher(self, rate: float) -> float:
        if self._failed == math.inf and rate < HIGHEST_RATE:
            return min(2 * rate, HIGHEST_RATE)
        return self._between(rate)

    def _lower(self, rate: float) -> float | None:
        if self._passed:
            return self._between(self._passed[-1])
        return None if rate <= LOWEST_RATE else max(LOWEST_RATE, rate / 2)

    def _between(self, passed: float) -> float:
        """The middle between a rate that passed and the one that failed; the first, to be confirmed, where they are
        close."""
        self._confirming = self._failed / passed <= _PRECISION or passed >= HIGHEST_RATE
        return passed if self._confirming else math.sqrt(passed * self._failed)
