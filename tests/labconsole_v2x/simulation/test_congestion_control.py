"""Simulated stations that hear the channel: DCC and omission of certificates, in a closed loop with their own load."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from labconsole_v2x.simulation.medium import BEST_EFFORT, SharedMedium
from labconsole_v2x.simulation.simulation_evaluation import evaluate
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from labconsole_v2x.simulation.simulation_trial import SimulationTrial
from labconsole_v2x.simulation.simulator_role import columns_of
from labconsole_v2x.simulation.testbed import Fate, SimulatedPackets, simulate
from tests.labconsole_v2x.live.synthetic_packets import named
from tests.labconsole_v2x.simulation.simulated_testbed import recorded

JAMMED = {"senders": 1, "attack": "a-sig-01", "attackers": 20, "attack_rate": 100.0}
"""A lone station among so many packets of attackers that the channel is busy for two thirds of the time."""


def parameters(**values: Any) -> SimulationParameters:
    return SimulationParameters.model_validate({"duration": 10.0, "timing": "epyc-p256", **values})


@cache
def simulated(**values: Any) -> SimulatedPackets:
    """The packets of a run; several tests look at the same one."""
    wanted = parameters(**values)
    return simulate(wanted, wanted.stack_timing(), np.random.default_rng(1))


def figures(**values: Any) -> dict[str, float]:
    """The metrics of such a run."""
    return named(evaluate(parameters(**values), recorded(columns_of(simulated(**values)))))


def generated_s(packets: SimulatedPackets) -> np.ndarray[Any, np.dtype[np.float64]]:
    """When the first station generated its packets after the warm-up."""
    times_s = packets.arrivals.generated_s
    own = (packets.arrivals.station == 1) & (packets.fate != Fate.HELD_BACK) & (times_s >= 2)
    return np.asarray(times_s[own])


def test_free_channel_holds_nothing_back() -> None:
    off, on = (figures(senders=16, dcc=dcc) for dcc in (False, True))
    assert on["held_back"] == 0 and "held_back" not in off
    assert on["offered_rate"] == pytest.approx(off["offered_rate"], rel=0.01)
    assert on["certificate_share"] == pytest.approx(off["certificate_share"], rel=0.05)
    assert on["channel_busy_ratio"] == pytest.approx(off["channel_busy_ratio"], rel=0.02)


@pytest.mark.parametrize(("senders", "rate", "ratio"), [(150, 5.7, 33), (300, 3.8, 40)])
def test_dcc_settles_below_half_of_the_channel(senders: int, rate: float, ratio: float) -> None:
    """At 10 Hz they would have it busy for 53 and 89 %."""
    off, on = (figures(senders=senders, dcc=dcc) for dcc in (False, True))
    assert on["offered_rate"] == pytest.approx(senders * rate, rel=0.06)
    assert on["held_back"] == pytest.approx(100 - 10 * rate, abs=4)
    assert on["channel_busy_ratio"] == pytest.approx(ratio, abs=4)
    assert off["channel_busy_ratio"] > 1.5 * on["channel_busy_ratio"]
    assert on["packet_loss"] < 0.75 * off["packet_loss"], "of the packets that were generated"
    assert on["neighbours_served"] == pytest.approx(off["neighbours_served"] * 10 / rate, rel=0.06)
    assert on["latency_p99"] < off["latency_p99"] + 1


def test_packets_held_back_are_never_sent_and_count_as_no_loss() -> None:
    packets = simulated(senders=150, dcc=True)
    held_back = packets.fate == Fate.HELD_BACK
    assert held_back.sum() > 4000
    assert np.isnan(packets.sent_s[held_back]).all() and np.isnan(packets.done_s[held_back]).all()
    assert (np.diff(packets.arrivals.generated_s) >= 0).all()
    found = figures(senders=150, dcc=True)
    assert found["lost"] == sum(value for name, value in found.items() if name.startswith("lost "))
    assert found["packet_loss"] == pytest.approx(100 * found["lost"] / (found["offered_rate"] * 10))


def test_station_in_a_jammed_channel_sends_once_a_second_and_attackers_as_before() -> None:
    off, on = (simulated(**JAMMED, dcc=dcc) for dcc in (False, True))
    assert np.diff(generated_s(off)).max() < 0.12
    intervals_s = np.diff(generated_s(on))
    assert intervals_s == pytest.approx(1.0, abs=0.011), "but for the jitter of the timing profile"
    assert on.attacker.sum() == pytest.approx(off.attacker.sum(), rel=0.01)
    assert not (on.fate[on.attacker] == Fate.HELD_BACK).any()


def test_rates_above_ten_are_held_back_in_each_instance() -> None:
    found = figures(**{**JAMMED, "rate": 100.0}, dcc=True)
    assert found["offered_rate"] == pytest.approx(10, rel=0.1), "ten instances of a packet a second each"


def test_vehicles_by_the_rules_wait_for_dcc_too() -> None:
    off, on = (simulated(**JAMMED, generation="rules", dcc=dcc) for dcc in (False, True))
    assert np.diff(generated_s(off)).min() < 0.5
    assert np.diff(generated_s(on)) == pytest.approx(1.0, abs=0.011)


def test_ideal_medium_is_heard_too() -> None:
    found = figures(senders=300, dcc=True, medium="ideal")
    assert found["held_back"] > 50 and found["packet_loss"] == 0


@pytest.mark.parametrize(("values", "share"), [({"senders": 1}, 100), (JAMMED, 100 / 11), ({"senders": 150}, 11)])
def test_certificates_are_omitted_the_more_the_busier_the_channel_that_stations_hear(
    values: dict[str, Any], share: float
) -> None:
    assert figures(**values, inclusion="congestion")["certificate_share"] == pytest.approx(share, rel=0.05)


def test_both_share_the_channel_busy_ratio() -> None:
    """DCC leaves a channel on which certificates are omitted less."""
    alone, both = (figures(senders=300, inclusion="congestion", dcc=dcc) for dcc in (False, True))
    assert both["held_back"] > 50 and both["certificate_share"] > 1.5 * alone["certificate_share"]


def test_medium_in_steps_collides_as_often_as_at_once() -> None:
    random = np.random.default_rng(1)
    ready_s = np.sort(random.random(30_000) * 20)
    station = random.integers(1, 16, len(ready_s))
    shares = []
    for steps in (1, 2000):
        medium = SharedMedium(BEST_EFFORT, 20, np.random.default_rng(2))
        busy_s = 0.0
        for frames in np.array_split(np.arange(len(ready_s)), steps):
            medium.add(station[frames].tolist(), ready_s[frames].tolist(), [3e-4] * len(frames))
            busy_s += sum(ended - begun for begun, ended in medium.run(ready_s[frames[-1]]))
        busy_s += sum(ended - begun for begun, ended in medium.run())
        sent = medium.transmissions()
        assert not np.isnan(sent.begun_s).any() and (sent.begun_s >= ready_s).all()
        assert busy_s == pytest.approx(3e-4 * len(np.unique(sent.begun_s)))
        shares.append(sent.collided.mean())
    assert shares[0] == pytest.approx(shares[1], rel=0.05)


def test_packets_beyond_the_table_of_dcc_are_reported() -> None:
    large = {"size_digest": 2537, "size_certificate": 6434, "timing": "epyc-ml-dsa-44"}
    sentence = "the intervals of DCC are those of packets of at most 1 ms"
    assert sentence in " ".join(SimulationTrial().warnings(parameters(**large, dcc=True)))
    assert sentence not in " ".join(SimulationTrial().warnings(parameters(**large)))
    assert sentence not in " ".join(SimulationTrial().warnings(parameters(dcc=True)))
