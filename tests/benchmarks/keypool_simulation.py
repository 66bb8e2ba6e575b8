"""How fast the key pool's simulation is: `python tests/benchmarks/keypool_simulation.py [ROUNDS]`.

The best of some rounds, for Table 4-1 and for a million requests and a business day at the thesis' peak rate.
"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from labconsole.clock import now_ns
from labconsole.profiles.timing_profile import RangeEnd, load_timing
from labconsole_keypool.choices import ArrivalPattern, KeySource, Refill, SignTime
from labconsole_keypool.service.arrivals import arrivals_ns
from labconsole_keypool.simulation.service_model import ServiceModel
from labconsole_keypool.simulation.simulator import simulate


def make_arrivals(pattern: ArrivalPattern, requests: int) -> NDArray[np.int64]:
    """Arrivals at the peak rate of section 1.3."""
    return arrivals_ns(pattern, requests=requests, rate=50, seed=1)


def best_s(arrivals: NDArray[np.int64], model: ServiceModel, queue_limit: int, rounds: int) -> float:
    """The shortest of some rounds, in seconds."""
    durations = []
    for _ in range(rounds):
        began = now_ns()
        simulate(arrivals, model, queue_limit=queue_limit)
        durations.append((now_ns() - began) / 1e9)
    return min(durations)


def main(rounds: int = 5) -> None:
    """Print one row per arrivals and service."""
    luna = load_timing("luna-sa-1700")
    lone = ServiceModel(
        sign_ms=luna.sign[SignTime.MALMO].ms,
        key_generation_ms=luna.key_generation.at(RangeEnd.SHORTEST),
        unwrap_ms=luna.unwrap.ms,
        keys=KeySource.POOL,
        keys_at_start=2_300,
        pool_keys=2_000_000,
        batch=175,
    )
    four = replace(lone, sign_ms=luna.sign_ms(SignTime.STOCKHOLM, 4), threads=4, refill=Refill.PARALLEL, low_water=2000)
    services = {
        "one thread, refill when empty, no limit": (lone, 0),
        "one thread, refill when empty, queue 50": (lone, 50),
        "four threads, parallel refill, queue 50": (four, 50),
        "four threads, keys generated, queue 50": (replace(four, keys=KeySource.GENERATED), 50),
    }
    print(f"{platform.platform()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, numpy {np.__version__}")
    for pattern, requests in (
        (ArrivalPattern.TABLE_4_1, 3_000),
        (ArrivalPattern.POISSON, 1_000_000),
        (ArrivalPattern.BUSINESS_DAY, 1_665_000),
    ):
        arrivals = make_arrivals(pattern, requests)
        for name, (model, queue_limit) in services.items():
            seconds = best_s(arrivals, model, queue_limit, rounds)
            print(f"{pattern:<13}{len(arrivals):>10,} requests  {name:<41}{seconds * 1e3:>10,.1f} ms")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
