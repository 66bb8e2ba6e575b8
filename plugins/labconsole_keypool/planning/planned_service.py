"""What a plan is for: a peak of constant rate, the service that meets it, and the day around it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class PlannedService:
    """A peak and the service that meets it.

    Attributes:
        rate: Requests per second at the peak (HR).
        duration_s: How long the peak lasts (T), s.
        sign_ms: Time to sign of each of `threads` (Si).
        generation_ms: Time to generate a key pair (KG).
        wrap_ms: Time to wrap and save a key pair.
        unwrap_ms: Time to load and unwrap a key pair (KP).
        threads: Signing threads.
        at_a_time: Key pairs that the device generates at a time.
        queue_limit: Requests that may wait; 0: no limit.
        keys_in_token: Key pairs that fit into the device's RAM and store.
        day: Requests in each hour of a day from midnight on, shape (24,).
        timing: Name of the timing profile that runs must have to be measurements of this service; "" for none, as
            real tokens run.
        sign: The profile's signing time that they must have; None without a profile.
    """

    rate: float
    duration_s: float
    sign_ms: float
    generation_ms: float
    wrap_ms: float
    unwrap_ms: float
    threads: int
    at_a_time: int
    queue_limit: int
    keys_in_token: int
    day: NDArray[np.float64]
    timing: str
    sign: str | None

    @property
    def requests(self) -> int:
        """Requests of the peak."""
        return max(1, round(self.rate * self.duration_s))

    @property
    def each_generated_ms(self) -> float:
        """Time from one generated key pair to the next."""
        return self.generation_ms / self.at_a_time

    @property
    def each_pooled_ms(self) -> float:
        """Time from one key pair that lies in the pool to the next: it is generated, wrapped and saved."""
        return (self.generation_ms + self.wrap_ms) / self.at_a_time
