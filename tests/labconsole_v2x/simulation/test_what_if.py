"""What the simulated testbed has beyond the source's: cores, generation rules, certificates, and larger signatures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from labconsole_v2x.simulation.arrivals import Arrivals, by_rules, generated
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from labconsole_v2x.simulation.simulation_trial import SimulationTrial
from labconsole_v2x.simulation.stack_queue import served_s
from tests.labconsole_v2x.simulation.simulated_testbed import figures

SATURATED = {"senders": 5, "rate": 100.0, "duration": 10.0, "medium": "ideal"}


def parameters(**values: Any) -> SimulationParameters:
    return SimulationParameters.model_validate({**SATURATED, **values})


def test_two_servers_take_a_packet_each_and_share_the_room() -> None:
    arrived, service = np.array([0.0, 1.0, 2.0, 3.0, 20.0]), np.array([10.0, 4.0, 4.0, 4.0, 1.0])
    assert served_s(arrived, service, 9, 2).tolist() == [10.0, 5.0, 9.0, 13.0, 21.0]
    found = served_s(arrived, service, 3, 2)
    assert np.isnan(found[3]) and found[2] == 9.0, "one waits: the fourth finds no room"


def test_twice_the_cores_serve_twice_as_many() -> None:
    one, two = (figures(parameters(receiver_cores=cores), 1) for cores in (1, 2))
    assert two["accept_rate"] == pytest.approx(2 * one["accept_rate"], rel=0.01)
    assert one["receiver_load"] == pytest.approx(100, abs=0.5) and two["receiver_load"] == pytest.approx(100, abs=0.5)
    assert two["neighbours_served"] == pytest.approx(2 * one["neighbours_served"])


def test_neighbours_are_those_that_the_receiver_s_time_serves() -> None:
    """8 ms a packet serve 125 a second: those of 12.5 stations at 10 Hz, less half of it that attackers take."""
    found = figures(parameters(rate=10.0), 1)["neighbours_served"]
    assert found == pytest.approx(12.5, rel=0.01)
    attacked = parameters(rate=10.0, attack="a-sig-01", attackers=1, attack_rate=62.5)
    assert figures(attacked, 1)["neighbours_served"] == pytest.approx(6.25, rel=0.02)


def test_vehicles_by_the_rules_send_between_one_and_ten_a_second() -> None:
    """Intervals are whole checks of 100 ms, with one certificate a second each."""
    found = by_rules(20, 20.0, 0.0, np.random.default_rng(1))
    for station in range(1, 21):
        own = found.generated_s[found.station == station]
        intervals = np.diff(own)
        assert intervals.min() > 0.0999 and intervals.max() < 1.0001
        assert intervals * 10 == pytest.approx(np.round(intervals * 10), abs=1e-6)
        certificates = found.generated_s[(found.station == station) & found.certificate]
        assert np.diff(certificates).min() > 0.9999 and 15 <= len(certificates) <= 20
    rate = len(found.station) / 20 / 20
    assert 1 < rate < 6
    assert (np.diff(found.generated_s) >= 0).all()


def test_offered_rate_is_that_of_the_vehicles_as_they_move() -> None:
    found = figures(parameters(senders=20, generation="rules", timing="epyc-p256"), 1)
    assert 20 < found["offered_rate"] < 120
    assert found["accept_rate"] == pytest.approx(found["offered_rate"])


@pytest.mark.parametrize(("inclusion", "each"), [("always", 1.0), ("never", 0.0), ("etsi", 0.1)])
def test_certificates_are_sent_as_the_policy_says(inclusion: str, each: float) -> None:
    found = arrivals(inclusion=inclusion)
    assert found.certificate.mean() == pytest.approx(each, abs=0.02)


def arrivals(**values: Any) -> Arrivals:
    return generated(parameters(**values), 0.0, np.random.default_rng(1))


def test_what_no_station_could_do_is_said() -> None:
    said = " ".join(SimulationTrial().warnings(parameters(size_digest=2537, size_certificate=6434, receiver_cores=64)))
    assert "Packets of 6,434 B do not fit GeoNetworking, which carries 1,398 B" in said
    assert "The receiver has 64 cores" in said
    assert "GeoNetworking" not in " ".join(SimulationTrial().warnings(parameters()))


def test_post_quantum_packets_fill_the_channel() -> None:
    """2,537 octets are on air for 3.5 ms: 50 vehicles at 10 Hz want more than there is."""
    given = {"senders": 50, "rate": 10.0, "medium": "edca", "timing": "epyc-ml-dsa-44", "size_unsecured": 89}
    found = figures(parameters(**given, size_digest=2537, size_certificate=6434), 1)
    assert found["channel_busy_ratio"] > 90 and found["packet_loss"] > 50 and found["receiver_load"] < 10
