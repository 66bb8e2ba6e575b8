"""Timing profiles: how long each operation of a device takes, for simulation and emulation.

A profile is a TOML file, of `profiles/timing/` of the console or of the operator's data directory. Every value says
where it comes from. One that `extends` another has its tables, too, where it does not give them itself.
"""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator

from labconsole.errors import UserError
from labconsole.profiles.timing_files import TimingFiles

Milliseconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class RangeEnd(StrEnum):
    """Which end of the range that a timing profile gives."""

    SHORTEST = "shortest"
    LONGEST = "longest"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Quantile(_Strict):
    """A quantile: this part of the operations, 0 to 1, takes this time or less."""

    part: Annotated[float, Field(ge=0, le=1)]
    ms: Milliseconds


class _Distributed(_Strict):
    """A time that may differ from operation to operation.

    `distribution` gives its shape, from part 0 to part 1, with straight lines between the quantiles; its mean is the
    time itself, whatever the quantiles' own is. Without one, each operation takes the same time.
    """

    reference: str
    distribution: tuple[Quantile, ...] = ()

    @field_validator("distribution")
    @classmethod
    def _ascends(cls, distribution: tuple[Quantile, ...]) -> tuple[Quantile, ...]:
        parts = [quantile.part for quantile in distribution]
        times = [quantile.ms for quantile in distribution]
        if parts and ((parts[0], parts[-1]) != (0, 1) or sorted(set(parts)) != parts or sorted(times) != times):
            raise ValueError("begin with part 0, end with part 1, and give larger parts and times in each further row")
        return distribution

    def factors(self, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        """Factors of single operations to the mean, for uniform random numbers of 0 to 1, of the same shape."""
        if not self.distribution:
            return np.ones_like(uniform)
        parts, times = np.array([(quantile.part, quantile.ms) for quantile in self.distribution]).T
        mean = float(((times[1:] + times[:-1]) / 2 * np.diff(parts)).sum())
        return np.asarray(np.interp(uniform, parts, times) / mean)


class Duration(_Distributed):
    """A time, and the place of the source that gives it."""

    ms: Milliseconds


class DurationRange(_Distributed):
    """A time of which the source gives several values: the ends of the range that is used."""

    shortest_ms: Milliseconds
    longest_ms: Milliseconds

    def at(self, end: RangeEnd) -> float:
        """One end of the range, ms."""
        return self.shortest_ms if end is RangeEnd.SHORTEST else self.longest_ms


class KeyGeneration(DurationRange):
    """The time to generate a key pair, and how many the device generates at a time: further ones wait."""

    at_a_time: Count = 1


class Capacity(_Strict):
    """A number of key pairs, and the place of the source that gives it."""

    key_pairs: Count
    reference: str


class ThreadDuration(_Strict):
    """Total time of many signatures divided by their number, with so many threads signing at once."""

    threads: Count
    ms: Milliseconds


class ThreadDurations(_Strict):
    """How signing gains from threads: rows by ascending number of threads, the first for one."""

    rows: tuple[ThreadDuration, ...]
    reference: str

    @field_validator("rows")
    @classmethod
    def _from_one_thread_on(cls, rows: tuple[ThreadDuration, ...]) -> tuple[ThreadDuration, ...]:
        threads = [row.threads for row in rows]
        if threads[:1] != [1] or any(later <= earlier for earlier, later in pairwise(threads)):
            raise ValueError("begin with one thread, and give more in each further row")
        return rows


class TimingProfile(_Strict):
    """How long each operation of a device takes. KG, KP and Si are those of the source's section 2.10."""

    title: Annotated[str, Field(description="the device, and what sets this profile apart")]
    key_generation: Annotated[
        KeyGeneration,
        Field(description="shortest_ms and longest_ms to generate a key pair, and the reference that gives them"),
    ]
    wrap: Annotated[
        DurationRange | None,
        Field(description="shortest_ms and longest_ms to wrap a private key and save it; none: as fast as the token"),
    ] = None
    unwrap: Annotated[Duration, Field(description="ms to load one wrapped key and unwrap it, and the reference")]
    sign: Annotated[
        dict[str, Duration],
        Field(description="a table for each signing time, as [sign.normal], with ms and reference", min_length=1),
    ]
    sign_by_threads: Annotated[
        ThreadDurations,
        Field(description="rows of threads and ms, a signature's share of the time, and the reference"),
    ]
    ram: Annotated[Capacity, Field(description="key_pairs that the device's RAM holds, and the reference")]
    store: Annotated[Capacity, Field(description="key_pairs that the device's store holds, and the reference")]
    one_way: Annotated[
        Duration | None, Field(description="ms between the service and a device at another site, each way")
    ] = None
    connection_set_up: Annotated[Duration | None, Field(description="ms until the device takes its first order")] = None
    warm_up: Annotated[Duration | None, Field(description="ms by which the first signature takes longer")] = None

    def sign_ms(self, time: str, threads: int) -> float:
        """The time of a signature in each of `threads`, where one thread alone takes the `time` of this profile.

        Scaled by `sign_by_threads`, between its rows by straight lines, beyond the last as in the last; and the way to
        the device and back.
        """
        rows = self.sign_by_threads.rows
        ms = float(np.interp(threads, [row.threads for row in rows], [row.ms for row in rows]))
        round_trip_ms = 0.0 if self.one_way is None else 2 * self.one_way.ms
        return self.sign[time].ms * threads * ms / rows[0].ms + round_trip_ms


TIMINGS = TimingFiles("timing", TimingProfile)
"""Those of HSMs, in `profiles/timing/`."""


def timing_names() -> tuple[str, ...]:
    """Names of all timing profiles, sorted: those that come with the console, and the operator's own."""
    return TIMINGS.names()


def sign_names() -> tuple[str, ...]:
    """The names of all signing times of all timing profiles that can be read, in their order."""
    names: dict[str, None] = {}
    for name in timing_names():
        with suppress(UserError):  # the form shows the fault when that profile is chosen
            names |= dict.fromkeys(load_timing(name).sign)
    return tuple(names)


def load_timing(name: str) -> TimingProfile:
    """Read the timing profile called `name`.

    Raises:
        UserError: there is none of that name, or it is not valid: a sentence for each field that is missing.
    """
    return TIMINGS.load(name)


def save_timing(name: str, profile: TimingProfile, *, replace: bool = False) -> Path:
    """Write an operator's own profile, whole or not at all, and return its path.

    Raises:
        UserError: the name is a published one's, or taken, or no name; or the file cannot be written.
    """
    return TIMINGS.save(name, profile, replace=replace)
