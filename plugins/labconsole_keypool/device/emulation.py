"""Emulates a device with the times and the capacity of a timing profile.

The real operation runs inside the emulated time: the rest is slept, to an absolute deadline. Key
generations take turns (`key_generation.at_a_time` of the profile), and so do wrapping and unwrapping; signatures run
at the same time as these and as each other, each with the time of Table 2-10 for the number of threads that sign.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from labconsole.clock import now_ns
from labconsole.profiles.timing_profile import Duration, DurationRange, RangeEnd, TimingProfile
from labconsole.security.token.errors import TokenFullError
from labconsole_keypool.choices import SignTime


class DeviceOperation(StrEnum):
    """An operation of a device that takes time."""

    GENERATE = "generate"
    WRAP = "wrap"
    UNWRAP = "unwrap"
    SIGN = "sign"


@dataclass(frozen=True)
class Timing:
    """The times of a timing profile that a device is emulated with; `speed` divides all of them."""

    profile: TimingProfile
    sign: str = SignTime.MALMO
    key_generation: RangeEnd = RangeEnd.SHORTEST
    speed: float = 1.0

    def duration_ns(self, operation: DeviceOperation, threads: int = 1) -> int:
        """The duration of an operation; of a signature, with this number of signing threads."""
        profile = self.profile
        match operation:
            case DeviceOperation.GENERATE:
                ms = profile.key_generation.at(self.key_generation)
            case DeviceOperation.WRAP:
                ms = 0.0 if profile.wrap is None else profile.wrap.at(self.key_generation)
            case DeviceOperation.UNWRAP:
                ms = profile.unwrap.ms
            case DeviceOperation.SIGN:
                ms = profile.sign_ms(self.sign, threads)
        return self._scaled_ns(ms)

    def drawn_ns(self, operation: DeviceOperation, threads: int = 1) -> int:
        """The duration of one operation: random where the profile has a distribution."""
        profile = self.profile
        match operation:
            case DeviceOperation.GENERATE:
                given: Duration | DurationRange | None = profile.key_generation
            case DeviceOperation.WRAP:
                given = profile.wrap
            case DeviceOperation.UNWRAP:
                given = profile.unwrap
            case DeviceOperation.SIGN:
                given = profile.sign[self.sign]
        duration_ns = self.duration_ns(operation, threads)
        if given is None or not given.distribution:
            return duration_ns
        return round(duration_ns * float(given.factors(np.array([random.random()]))[0]))

    @property
    def connection_set_up_ns(self) -> int:
        """Time from connecting until the device accepts an operation."""
        return 0 if self.profile.connection_set_up is None else self._scaled_ns(self.profile.connection_set_up.ms)

    @property
    def warm_up_ns(self) -> int:
        """The extra time of the first signature."""
        return 0 if self.profile.warm_up is None else self._scaled_ns(self.profile.warm_up.ms)

    def _scaled_ns(self, ms: float) -> int:
        return round(ms * 1e6 / self.speed)


class Device:
    """The emulated speed and capacity of a token in this process.

    Two processes on one token have a device each. May be used by several threads.

    Args:
        timing: Emulate a device; None: as fast as the token is.
        ram: Key pairs that the RAM holds.
        store: Key pairs that the store holds.

    Attributes:
        threads: How many threads sign; set by the engine.
        store: As above.
    """

    def __init__(self, timing: Timing | None = None, *, ram: int = 12_033, store: int = 20_000) -> None:
        self.timing = timing
        self.store = store
        self.threads = 1
        self._ram = ram
        self._in_ram = 0
        self._lock = threading.Lock()
        self._generating = threading.Semaphore(timing.profile.key_generation.at_a_time if timing else 1)
        self._loading = threading.Lock()
        self._warm_up_ns = timing.warm_up_ns if timing else 0
        self._hurrying = False

    def connect(self) -> None:
        """Wait as long as the connection's set-up takes."""
        if self.timing is not None:
            sleep_until(now_ns() + self.timing.connection_set_up_ns)

    def warm_up(self) -> None:
        """Wait as long as the first signature would take longer than the others; then none does."""
        sleep_until(now_ns() + self._warming_up_ns())

    @contextmanager
    def busy(self, operation: DeviceOperation, since_ns: int | None = None) -> Iterator[int]:
        """The block is this operation: waits for its turn, and ends no earlier than the device would (given by `as`).

        `since_ns`: when the device began with it, if it had it before this call; what a thread needs between two
        operations is then part of them. Now, if the operation had to wait for its turn.
        """
        if self.timing is None or self._hurrying:
            yield now_ns()
            return
        asked_ns = now_ns()
        with ExitStack() as turn:
            waited = self._take_turn(operation, turn)
            began_ns = now_ns() if waited else asked_ns if since_ns is None else since_ns
            ends_ns = began_ns + self.timing.drawn_ns(operation, self.threads)
            if operation is DeviceOperation.SIGN:
                ends_ns += self._warming_up_ns()
            yield ends_ns
            sleep_until(ends_ns)

    @contextmanager
    def hurrying(self) -> Iterator[None]:
        """In the block the token is as fast as it is: for what is prepared before the emulation begins."""
        self._hurrying = True
        try:
            yield
        finally:
            self._hurrying = False

    @property
    def in_ram(self) -> int:
        """Key pairs that are in the RAM."""
        return self._in_ram

    @property
    def room(self) -> int:
        """Key pairs that still fit into the RAM."""
        return self._ram - self._in_ram

    def take_room(self) -> None:
        """One more key pair comes into the RAM. Raises TokenFullError: it holds no more."""
        with self._lock:
            if self._in_ram >= self._ram:
                raise TokenFullError(f"The token is full: it holds {self._ram:,} key pairs, as the scenario says.")
            self._in_ram += 1

    def give_room(self) -> None:
        """A key pair in the RAM was destroyed."""
        with self._lock:
            self._in_ram -= 1

    def _take_turn(self, operation: DeviceOperation, turn: ExitStack) -> bool:
        """Wait until the device accepts this operation; returns whether it had to wait."""
        if operation is DeviceOperation.SIGN:
            return False
        place = self._generating if operation is DeviceOperation.GENERATE else self._loading
        waited = not place.acquire(blocking=False)
        if waited:
            place.acquire()
        turn.callback(place.release)
        return waited

    def _warming_up_ns(self) -> int:
        """The extra time of this signature, if it is the first."""
        with self._lock:
            warm_up_ns, self._warm_up_ns = self._warm_up_ns, 0
            return warm_up_ns


def sleep_until(t_ns: int) -> None:
    """Sleep until `clock.now_ns` is `t_ns`; not at all when it is past."""
    left_ns = t_ns - now_ns()
    if left_ns > 0:
        time.sleep(left_ns / 1e9)
