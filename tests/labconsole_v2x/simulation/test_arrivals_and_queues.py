"""When simulated packets are generated, and what a finite queue makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from labconsole_v2x.simulation.arrivals import Arrivals, periodic_arrivals
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from labconsole_v2x.simulation.stack_queue import served_s
from labconsole_v2x.simulation.testbed import simulate


def arrivals(stations: int, rate: float, *, jitter_s: float = 0.0) -> Arrivals:
    return periodic_arrivals(stations, rate, 10.0, jitter_s, np.random.default_rng(1))


def test_instances_are_periodic_and_begin_anywhere() -> None:
    found = arrivals(3, 10.0)
    assert len(found.station) == 300 and (np.diff(found.generated_s) >= 0).all()
    for station in (1, 2, 3):
        assert np.diff(found.generated_s[found.station == station]) == pytest.approx(0.1)
    assert len({round(float(found.generated_s[found.station == one].min()), 6) for one in (1, 2, 3)}) == 3


def test_hundred_hertz_are_ten_instances_of_ten_each_with_its_certificates() -> None:
    """One packet of each instance in each second carries the certificate; instances are not in step with each other."""
    found = arrivals(1, 100.0)
    assert len(found.station) == 1000
    for instance in range(10):
        certificates = found.generated_s[(found.instance == instance) & found.certificate]
        assert len(certificates) in (10, 11) and np.diff(certificates)[1:] == pytest.approx(1.0)
    of_second = found.generated_s[found.certificate] % 1.0
    assert max(np.histogram(of_second, 10, (0, 1))[0]) < 40, "spread over the second"
    assert len(set(found.instance.tolist())) == 10
    for instance in range(10):
        assert np.diff(found.generated_s[found.instance == instance]) == pytest.approx(0.1)
    assert len(arrivals(1, 25.0).station) == 250


def test_jitter_only_delays() -> None:
    plain, late = arrivals(1, 1.0), arrivals(1, 1.0, jitter_s=0.5)
    shift = late.generated_s - plain.generated_s[: len(late.generated_s)]
    assert (shift >= 0).all() and (shift <= 0.5).all() and shift.max() > 0.2


def test_attackers_have_the_highest_numbers_and_instances_of_their_own() -> None:
    values = {"senders": 2, "warm_up": 0.0, "duration": 10.0, "attack": "a-sig-01", "attackers": 1, "attack_rate": 20.0}
    parameters = SimulationParameters.model_validate(values)
    found = simulate(parameters, parameters.stack_timing(), np.random.default_rng(1))
    station, instance = found.arrivals.station, found.arrivals.instance
    assert (np.diff(found.arrivals.generated_s) >= 0).all()
    assert [int((station == one).sum()) for one in (1, 2, 3)] == pytest.approx([100, 100, 200], abs=4)
    assert (found.attacker == (station == 3)).all()
    pairs = {(int(one), int(other)) for one, other in zip(station, instance, strict=True)}
    assert pairs == {(1, 0), (2, 1), (3, 2), (3, 3)}


@pytest.mark.parametrize("attack", ["none", "a-sig-01"])
def test_run_too_short_for_a_packet_has_none(attack: str) -> None:
    values = {"senders": 1, "rate": 1.0, "attack": attack, "attackers": 1, "attack_rate": 1.0}
    parameters = SimulationParameters.model_validate({**values, "warm_up": 0.0, "duration": 0.5})
    timing = parameters.stack_timing()
    assert 0 in {len(simulate(parameters, timing, np.random.default_rng(seed)).size) for seed in range(30)}


def test_queue_serves_one_after_the_other_and_loses_what_has_no_room() -> None:
    """Room for two: the one in service and one that waits."""
    arrived, service = np.array([0.0, 1.0, 2.0, 3.0, 20.0]), np.array([10.0, 4.0, 4.0, 4.0, 1.0])
    found = served_s(arrived, service, 2)
    assert found.tolist()[:2] == [10.0, 14.0] and np.isnan(found[2:4]).all() and found[4] == 21.0
    assert served_s(arrived, service, 9).tolist() == [10.0, 14.0, 18.0, 22.0, 23.0]


def test_packet_that_comes_as_another_one_leaves_finds_room() -> None:
    assert served_s(np.array([0.0, 2.0]), np.array([2.0, 2.0]), 1).tolist() == [2.0, 4.0]
