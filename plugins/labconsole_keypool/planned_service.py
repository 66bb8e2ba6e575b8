"""What a plan is for: a peak of constant rate, the service that meets it, and the day around it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labconsole_keypool.choices import RangeEnd, SignTime
from labconsole_keypool.planner import business_day
from labconsole_keypool.timing import TimingProfile


@dataclass(frozen=True)
class PlannedService:
    """A peak and the service that meets it.

    Attributes:
        rate: Requests per second at the peak (HR).
        duration_s: How long the peak lasts (T), s.
        sign_ms: Time to sign of each of `threads` (Si).
        generation_ms: Time to generate a key pair (KG).
        unwrap_ms: Time to load and unwrap a key pair (KP).
        threads: Signing threads.
        at_a_time: Key pairs that the device generates at a time.
        queue_limit: Requests that may wait; 0: no limit.
        keys_in_token: Key pairs that fit into the device's RAM and store.
        day: Requests in each hour of a day from midnight on, shape (24,).
        timing: Name of the timing profile and of its signing time, which runs must have to be measurements of this.
    """

    rate: float
    duration_s: float
    sign_ms: float
    generation_ms: float
    unwrap_ms: float
    threads: int
    at_a_time: int
    queue_limit: int
    keys_in_token: int
    day: NDArray[np.float64]
    timing: tuple[str, SignTime]

    @property
    def requests(self) -> int:
        """Requests of the peak."""
        return max(1, round(self.rate * self.duration_s))

    @property
    def each_generated_ms(self) -> float:
        """Time from one generated key pair to the next."""
        return self.generation_ms / self.at_a_time


def service_of_profile(
    name: str,
    profile: TimingProfile,
    sign: SignTime,
    generation: RangeEnd,
    *,
    rate: float,
    duration_s: float,
    threads: int,
    queue_limit: int,
    day: NDArray[np.float64] | None = None,
) -> PlannedService:
    """A service on the device of a timing profile; without a `day` of its own it has the source's business day."""
    return PlannedService(
        rate=rate,
        duration_s=duration_s,
        sign_ms=profile.sign_ms(sign, threads),
        generation_ms=profile.key_generation.at(generation),
        unwrap_ms=profile.unwrap.ms,
        threads=threads,
        at_a_time=profile.key_generation.at_a_time,
        queue_limit=queue_limit,
        keys_in_token=profile.ram.key_pairs + profile.store.key_pairs,
        day=business_day(rate) if day is None else day,
        timing=(name, sign),
    )
