"""A device that answers as slowly as a timing profile says, and holds no more keys than it may.

The real operation runs inside the emulated time: what is missing at its end is slept, to an absolute deadline. Key
generation, wrapping and unwrapping take turns (`key_generation.at_a_time` of the profile for generation); signatures
run beside them and beside one another, each as slow as Table 2-10 says for the number that is being made. A device is
of one process: two signers on one token emulate two devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from labconsole_keypool.choices import RangeEnd, SignTime
from labconsole_keypool.timing import TimingProfile


class Operation(StrEnum):
    """What a device is busy with."""

    GENERATE = "generate"
    WRAP = "wrap"
    UNWRAP = "unwrap"
    SIGN = "sign"


@dataclass(frozen=True)
class Timing:
    """Which times of a timing profile a device takes; `speed` divides all of them, as the arrivals' time scale does."""

    profile: TimingProfile
    sign: SignTime = SignTime.MALMO
    key_generation: RangeEnd = RangeEnd.SHORTEST
    speed: float = 1.0


class Device:
    """What a token of this process is taken for: its speed, and what its RAM and its store hold.

    Args:
        timing: Emulate a device; None: as fast as the token is.
        ram: Key pairs that the RAM holds.
        store: Key pairs that the store holds.
    """

    def __init__(self, timing: Timing | None = None, *, ram: int = 12_033, store: int = 20_000) -> None:
        raise NotImplementedError

    @contextmanager
    def busy(self, operation: Operation) -> Iterator[None]:
        """The block is this operation: waits for its turn, and ends no earlier than the device would."""
        yield

    def connect(self) -> None:
        """Wait as long as the connection's set-up takes; the first signature then takes the warm-up longer."""

    @property
    def room(self) -> int:
        """Key pairs that still fit into the RAM."""
        raise NotImplementedError

    def take_room(self) -> None:
        """One more key pair is in the RAM. Raises TokenFullError: it holds no more."""

    def give_room(self) -> None:
        """A key pair in the RAM was destroyed."""
