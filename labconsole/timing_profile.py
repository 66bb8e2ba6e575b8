"""Timing profiles: how long each operation of a device takes, for simulation and emulation.

A profile is a TOML file of `profiles/timing/`. Every value says where it comes from. One that `extends` another takes
over what it does not give itself, table by table.
"""

from __future__ import annotations

import tomllib
from enum import StrEnum
from itertools import pairwise
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from labconsole.locations import profiles_dir
from labconsole.profile_file import fault_sentence, nearest
from labconsole.trial import TrialError

Milliseconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class RangeEnd(StrEnum):
    """Which end of the range that a timing profile gives."""

    SHORTEST = "shortest"
    LONGEST = "longest"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Duration(_Strict):
    """A time, and the place of the source that gives it."""

    ms: Milliseconds
    reference: str


class DurationRange(_Strict):
    """A time of which the source gives several values: the ends of the range that is used."""

    shortest_ms: Milliseconds
    longest_ms: Milliseconds
    reference: str

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
    """How long each operation of a device takes.

    Attributes:
        title: The device, and what sets this profile apart.
        key_generation: Generate a key pair (KG, section 2.10.1).
        wrap: Wrap a private key and save it (section 2.10.2); None: as fast as the token is.
        unwrap: Load one wrapped key into the device and unwrap it (KP, section 2.10.3).
        sign: Sign with one thread (Si), by name.
        sign_by_threads: Sign with several threads (section 2.10.4).
        ram: What the device's RAM holds.
        store: What the device's store holds.
        one_way: Between the service and a device that stands elsewhere: a signature goes there and back.
        connection_set_up: Until the device takes its first order.
        warm_up: How much longer the first signature takes.
    """

    title: str
    key_generation: KeyGeneration
    wrap: DurationRange | None = None
    unwrap: Duration
    sign: dict[str, Duration]
    sign_by_threads: ThreadDurations
    ram: Capacity
    store: Capacity
    one_way: Duration | None = None
    connection_set_up: Duration | None = None
    warm_up: Duration | None = None

    def sign_ms(self, time: str, threads: int) -> float:
        """What each of `threads` takes for a signature, where one alone takes the `time` of this profile.

        Scaled by `sign_by_threads`, between its rows by straight lines, beyond the last as in the last; and the way to
        the device and back.
        """
        rows = self.sign_by_threads.rows
        ms = float(np.interp(threads, [row.threads for row in rows], [row.ms for row in rows]))
        round_trip_ms = 0.0 if self.one_way is None else 2 * self.one_way.ms
        return self.sign[time].ms * threads * ms / rows[0].ms + round_trip_ms


def timing_names() -> tuple[str, ...]:
    """Names of the timing profiles that come with the console, sorted."""
    return tuple(sorted(path.stem for path in (profiles_dir() / "timing").glob("*.toml")))


def load_timing(name: str) -> TimingProfile:
    """Read the timing profile called `name`.

    Raises:
        TrialError: there is none of that name, or it is not valid.
    """
    tables = _tables(name)
    try:
        return TimingProfile.model_validate(tables)
    except ValidationError as error:
        raise TrialError(f"Timing profile {name}: {fault_sentence(error, TimingProfile)}") from error


def _tables(name: str) -> dict[str, object]:
    """The tables of a profile's file over those of the profile that it extends."""
    names = timing_names()
    if name not in names:
        raise TrialError(f"No timing profile is called {name}{nearest(name, names)}")
    path = profiles_dir() / "timing" / f"{name}.toml"
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TrialError(f"The timing profile {path} cannot be read: {error}.") from error
    base = tables.pop("extends", None)
    return tables if base is None else {**_tables(str(base)), **tables}
