"""When the packets of simulated stations are generated: periodic instances with jitter, and their certificates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

INSTANCE_HZ = 10.0
"""Higher rates are several instances of at most this rate: the source's 100 Hz are ten of 10 Hz."""


class Arrivals(NamedTuple):
    """Packets in order of time, arrays of one length."""

    station: NDArray[np.int64]
    """From 1 on."""
    instance: NDArray[np.int64]
    """A number for each instance of each station: programs of their own, as in the source's boxes."""
    generated_s: NDArray[np.float64]
    certificate: NDArray[np.bool_]
    """Whether a packet carries the whole certificate: each instance's first one in each second."""


def periodic_arrivals(
    stations: int, rate: float, *, duration_s: float, jitter_s: float, random: np.random.Generator, first: int = 1
) -> Arrivals:
    """The packets of `stations` (numbered from `first` on) at `rate` Hz each.

    Each instance begins anywhere in its first period; each packet is later than its period by up to `jitter_s`,
    uniformly distributed.
    """
    instances = -(-rate // INSTANCE_HZ)
    period_s = instances / rate
    count = int(stations * instances)
    each = int(np.ceil(duration_s / period_s))
    due = random.random((count, 1)) * period_s + period_s * np.arange(each)
    generated = due + random.random((count, each)) * jitter_s
    generated.sort(axis=1)
    certificate = np.diff(np.floor(generated), axis=1, prepend=-1.0) > 0
    instance = np.repeat(np.arange(count), each)
    order = np.argsort(generated, axis=None, kind="stable")
    inside = order[generated.ravel()[order] < duration_s]
    station = first + instance[inside] % stations
    return Arrivals(station, instance[inside], generated.ravel()[inside], certificate.ravel()[inside])


def together(*arrivals: Arrivals) -> Arrivals:
    """All packets in order of time."""
    beyond = np.cumsum([0, *(one.instance.max() + 1 for one in arrivals)])
    apart = [one._replace(instance=one.instance + start) for one, start in zip(arrivals, beyond, strict=False)]
    columns = [np.concatenate(column) for column in zip(*apart, strict=True)]
    order = np.argsort(np.concatenate([one.generated_s for one in arrivals]), kind="stable")
    return Arrivals(*(column[order] for column in columns))
