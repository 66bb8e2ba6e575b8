"""When simulated packets are generated, and what a finite queue makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from labconsole_v2x.simulation.arrivals import Arrivals, periodic_arrivals, together
from labconsole_v2x.simulation.queueing import served_s


def arrivals(stations: int, rate: float, *, jitter_s: float = 0.0, first: int = 1) -> Arrivals:
    random = np.random.default_rng(1)
    return periodic_arrivals(stations, rate, duration_s=10.0, jitter_s=jitter_s, random=random, first=first)


def test_instances_are_periodic_and_begin_anywhere() -> None:
    found = arrivals(3, 10.0)
    assert len(found.station) == 300 and (np.diff(found.generated_s) >= 0).all()
    for station in (1, 2, 3):
        assert np.diff(found.generated_s[found.station == station]) == pytest.approx(0.1)
    assert len({round(float(found.generated_s[found.station == one].min()), 6) for one in (1, 2, 3)}) == 3


def test_hundred_hertz_are_ten_instances_of_ten_each_with_its_certificates() -> None:
    """The first packet of each instance in each second carries the certificate."""
    found = arrivals(1, 100.0)
    assert len(found.station) == 1000 and found.certificate.sum() == 100
    assert arrivals(2, 10.0).certificate.sum() == 20
    assert len(set(found.instance.tolist())) == 10
    for instance in range(10):
        assert np.diff(found.generated_s[found.instance == instance]) == pytest.approx(0.1)
    assert len(arrivals(1, 25.0).station) == 250


def test_jitter_only_delays() -> None:
    plain, late = arrivals(1, 1.0), arrivals(1, 1.0, jitter_s=0.5)
    shift = late.generated_s - plain.generated_s[: len(late.generated_s)]
    assert (shift >= 0).all() and (shift <= 0.5).all() and shift.max() > 0.2


def test_stations_are_put_together_in_order_of_time() -> None:
    found = together(arrivals(2, 10.0), arrivals(1, 5.0, first=3))
    assert (np.diff(found.generated_s) >= 0).all()
    assert [int((found.station == one).sum()) for one in (1, 2, 3)] == [100, 100, 50]
    assert {(int(one), int(other)) for one, other in zip(found.station, found.instance, strict=True)} == {
        (1, 0),
        (2, 1),
        (3, 2),
    }


def test_queue_serves_one_after_the_other_and_loses_what_has_no_room() -> None:
    """Room for two: the one in service and one that waits."""
    arrived, service = np.array([0.0, 1.0, 2.0, 3.0, 20.0]), np.array([10.0, 4.0, 4.0, 4.0, 1.0])
    found = served_s(arrived, service, 2)
    assert found.tolist()[:2] == [10.0, 14.0] and np.isnan(found[2:4]).all() and found[4] == 21.0
    assert served_s(arrived, service, 9).tolist() == [10.0, 14.0, 18.0, 22.0, 23.0]


def test_packet_that_comes_as_another_one_leaves_finds_room() -> None:
    assert served_s(np.array([0.0, 2.0]), np.array([2.0, 2.0]), 1).tolist() == [2.0, 4.0]
