"""The parameters of the planner: the peak, the device with its times, and the service on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import field_validator

from labconsole.model.parameters import parameter
from labconsole.model.trial import Origin, Parameters
from labconsole.profiles.timing_profile import RangeEnd, load_timing, timing_names
from labconsole_keypool.choices import LABELS, SignTime
from labconsole_keypool.form_fields import known_sign_time, known_timing, sign_time
from labconsole_keypool.planning.formulas import business_day
from labconsole_keypool.service.arrivals import MOST_REQUESTS


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
        """Time to generate, wrap and save one key pair."""
        return (self.generation_ms + self.wrap_ms) / self.at_a_time


@dataclass(frozen=True)
class Cell:
    """`note` says how the figure was found; where `value` is None, why there is none. `origin` is that of a run's."""

    value: float | None
    note: str
    origin: Origin | None = None


OWN_TIMES = ""
"""The choice of entering the times instead of naming a timing profile."""

_PEAK, _DEVICE = "Peak", "Device"
_OWN = {"timing": OWN_TIMES}
_PROFILED = {"timing": timing_names}


def _ms(title: str, description: str) -> Any:
    """The field of a time that is entered where there is no timing profile."""
    return parameter(title, description, gt=0, le=1e6, group=_DEVICE, unit="ms", shown_if=_OWN)


class PlannerParameters(Parameters):
    """A peak of constant rate, and the device that is to meet it (`hsm-key-pool-thesis.txt`, sections 1.9 and 4.5)."""

    rate: float = parameter(
        "Rate at the peak (HR)",
        "Requests per second at the peak; the business day around it has the source's shape",
        default=50.0,
        gt=0,
        le=100_000,
        group=_PEAK,
        unit="1/s",
    )
    duration_s: float = parameter(
        "Peak lasts (T)",
        "The source has two hours, 7,200 s",
        default=7200.0,
        gt=0,
        le=366 * 86_400,
        group=_PEAK,
        unit="s",
    )
    queue_limit: int = parameter(
        "Queue limit",
        "Requests that may wait; one that finds so many is dropped. 0: no limit",
        default=50,
        ge=0,
        le=MOST_REQUESTS,
        group=_PEAK,
    )
    threads: int = parameter("Signing threads", "Requests signed at a time", default=1, ge=1, le=50, group=_PEAK)
    timing: str = parameter(
        "Timing profile",
        "The device's times; empty: enter them, as keypool.step-times measured them",
        default="luna-sa-1700",
        group=_DEVICE,
        choices=lambda: [OWN_TIMES, *timing_names()],
    )
    sign: Annotated[str, sign_time(_DEVICE)] = SignTime.MALMO.value
    key_generation: RangeEnd = parameter(
        "Key generation (KG)",
        "Which of the profile's times to generate a key pair, and to wrap it",
        default=RangeEnd.SHORTEST,
        group=_DEVICE,
        labels=LABELS["key_generation"],
        shown_if=_PROFILED,
    )
    sign_ms: Annotated[float, _ms("Signing takes (Si)", "Time of each thread to sign")] = 1.0
    generation_ms: Annotated[float, _ms("Key generation takes (KG)", "Time to generate a key pair")] = 300.0
    wrap_ms: Annotated[float, _ms("Wrapping takes", "Time to wrap and save a key pair")] = 1.0
    unwrap_ms: Annotated[float, _ms("Unwrapping takes (KP)", "Time to load and unwrap a key pair")] = 1.0
    keys_in_token: int = parameter(
        "Token holds",
        "Key pairs that fit into the device",
        default=12_033,
        ge=1,
        le=100_000_000,
        group=_DEVICE,
        unit="keys",
        shown_if=_OWN,
    )

    _timing_is_there = field_validator("timing")(known_timing)
    _sign_is_there = field_validator("sign")(known_sign_time)

    def service(self, day: NDArray[np.float64] | None = None) -> PlannedService:
        """The planned service; `day` holds the requests of each of its 24 hours, by default the source's business day.

        Raises UserError: there is no such timing profile, or it is broken.
        """
        sign_ms, generation_ms = self.sign_ms, self.generation_ms
        wrap_ms, unwrap_ms = self.wrap_ms, self.unwrap_ms
        keys_in_token, at_a_time = self.keys_in_token, 1
        if self.timing != OWN_TIMES:
            profile = load_timing(self.timing)
            sign_ms = profile.sign_ms(self.sign, self.threads)
            generation_ms = profile.key_generation.at(self.key_generation)
            wrap_ms = 0.0 if profile.wrap is None else profile.wrap.at(self.key_generation)
            unwrap_ms, at_a_time = profile.unwrap.ms, profile.key_generation.at_a_time
            keys_in_token = profile.ram.key_pairs + profile.store.key_pairs
        return PlannedService(
            rate=self.rate,
            duration_s=self.duration_s,
            sign_ms=sign_ms,
            generation_ms=generation_ms,
            wrap_ms=wrap_ms,
            unwrap_ms=unwrap_ms,
            threads=self.threads,
            at_a_time=at_a_time,
            queue_limit=self.queue_limit,
            keys_in_token=keys_in_token,
            day=business_day(self.rate) if day is None else day,
            timing=self.timing,
            sign=self.sign if self.timing != OWN_TIMES else None,
        )
