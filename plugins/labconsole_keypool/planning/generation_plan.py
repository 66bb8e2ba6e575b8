"""Plans key generation for a forecast week: the size of the pool, and the idle hours in which keys are generated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from labconsole.analysis.number_format import format_number
from labconsole_keypool.planning.forecast import Forecast
from labconsole_keypool.planning.formulas import HOUR_S, Derivation, keys_needed, made_when_idle


@dataclass(frozen=True)
class Window:
    """Hours in a row in which more keys can be generated than are taken.

    `keys` are those to be made in it, of the `capacity` that its idle time has; at its end the pool must hold `pool`.
    """

    begin: datetime
    end: datetime
    keys: int
    capacity: int
    pool: int


@dataclass(frozen=True)
class GenerationPlan:
    """The keys that a device generates in its idle time for a forecast week.

    Attributes:
        pool: Largest number of keys that the pool must hold, with its derivation.
        at_start: Keys that the pool must hold when the week begins.
        windows: When they are made, in order.
        requests: Requests of the week, with the margin.
        made: Keys that the week's idle time makes.
    """

    pool: Derivation
    at_start: int
    windows: tuple[Window, ...]
    requests: int
    made: int

    @property
    def keeps_up(self) -> bool:
        """Whether generation makes at least as many keys in the idle time of the week as the week uses."""
        return self.made >= self.requests

    @property
    def sentence(self) -> str:
        """A sentence: that generation keeps up, with both numbers, or the number of devices that would."""
        if self.keeps_up:
            return f"Generation keeps up: the week takes {self.requests:,} keys, and its idle time makes {self.made:,}."
        missing = self.requests - self.made
        if not self.made:
            return f"Generation does not keep up: the week takes {self.requests:,} keys, and no idle time is left."
        return (
            f"Generation does not keep up: the week takes {self.requests:,} keys, and its idle time makes "
            f"{self.made:,}. Each week {missing:,} are missing: let {math.ceil(self.requests / self.made)} such "
            "devices generate, or have the difference in the pool beforehand."
        )


def plan_generation(forecast: Forecast, base: float, pooled_ms: float) -> GenerationPlan:
    """Plan the forecast week, with the margin by which the held-out week's worst day was above its forecast.

    Args:
        forecast: The week.
        base: Requests that the device signs in a second (BR).
        pooled_ms: Time to generate a key pair (KG), to wrap and to save it (Table 2-5).
    """
    requests = forecast.expected * (1 + forecast.margin)
    made = made_when_idle(requests, base, pooled_ms)
    needed = keys_needed(requests, made)
    if made.sum() >= requests.sum():
        # The week after it is taken to be alike: what that needs at its beginning must be there at this one's end.
        needed = keys_needed(requests, made, float(needed[0]))
    after = np.append(needed[1:], needed[0] if made.sum() >= requests.sum() else 0.0)
    most = int(np.append(needed, after[-1]).argmax())
    when = forecast.start + timedelta(hours=most)
    value = math.ceil(float(np.append(needed, after[-1])[most]) - 1e-9)
    pool = Derivation(
        float(value),
        "keys",
        (
            f"requests of each hour as forecast, and {forecast.margin * 100:.1f} % more: the held-out week's worst day "
            "was so far above its forecast",
            f"idle part of an hour = 1 - requests / (BR * 3,600 s), BR = {format_number(round(base, 3))}/s; a key is "
            f"generated, wrapped and saved in {format_number(round(pooled_ms, 3))} ms: at most "
            f"{round(HOUR_S * 1000 / pooled_ms):,} an hour",
            f"most keys are needed on {when:%A %Y-%m-%d %H:%M}: {value:,} keys",
        ),
    )
    windows = tuple(_windows(forecast.start, requests, made, needed, after))
    return GenerationPlan(pool, math.ceil(float(needed[0]) - 1e-9), windows, round(requests.sum()), round(made.sum()))


def _windows(
    start: datetime,
    requests: NDArray[np.float64],
    made: NDArray[np.float64],
    needed: NDArray[np.float64],
    after: NDArray[np.float64],
) -> Iterator[Window]:
    idle = np.flatnonzero(made > requests)
    for hours in np.split(idle, np.flatnonzero(np.diff(idle) > 1) + 1):
        if len(hours):
            first, last = int(hours[0]), int(hours[-1])
            taken, capacity = float(requests[first : last + 1].sum()), float(made[first : last + 1].sum())
            keys = float(after[last]) - float(needed[first]) + taken
            yield Window(
                start + timedelta(hours=first),
                start + timedelta(hours=last + 1),
                min(math.ceil(keys - 1e-9), round(capacity)),
                round(capacity),
                math.ceil(float(after[last]) - 1e-9),
            )
