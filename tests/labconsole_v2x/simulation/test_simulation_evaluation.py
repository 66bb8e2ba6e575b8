"""Figures of simulated runs by their definitions, on packets made by hand whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from labconsole_v2x.simulation.simulation_evaluation import curves, distributions, evaluate
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from labconsole_v2x.simulation.testbed import Fate
from tests.labconsole_v2x.live.synthetic_packets import Tables, named
from tests.labconsole_v2x.simulation.simulated_testbed import recorded

MS = 1_000_000
PARAMETERS = SimulationParameters.model_validate(
    {"warm_up": 1.0, "duration": 2.0, "attack": "a-sig-01", "attackers": 1, "senders": 2}
)
PACKETS = (
    # attacker, generated, sent, done (ms), fate
    (0, 500, 501, 510, Fate.ACCEPTED),
    (0, 1000, 1001, 1010, Fate.ACCEPTED),
    (1, 1100, 1101, 1108, Fate.REJECTED),
    (0, 1200, 1201, 1230, Fate.ACCEPTED),
    (0, 1300, 1301, None, Fate.COLLIDED),
    (1, 1300, 1301, None, Fate.COLLIDED),
    (0, 1400, 1401, None, Fate.RECEIVER_FULL),
    (1, 1500, 1501, None, Fate.RECEIVER_FULL),
    (0, 2900, None, None, Fate.SENDER_FULL),
)


def ns(time: int | None) -> int:
    return -1 if time is None else time * MS


HELD_BACK = tuple((0, due, None, None, Fate.HELD_BACK) for due in (600, 1600, 1700, 2600))


def samples(packets: Sequence[tuple[int, int, int | None, int | None, Fate]]) -> Tables:
    """Samples with these packets, of which the first two benign ones carry the certificate."""
    return recorded(
        {
            "station": [3 if row[0] else 1 for row in packets],
            "attacker": [row[0] for row in packets],
            "generated_ns": [row[1] * MS for row in packets],
            "sent_ns": [ns(row[2]) for row in packets],
            "airtime_ns": [MS] * len(packets),
            "done_ns": [ns(row[3]) for row in packets],
            "service_ns": [8 * MS] * len(packets),
            "size": [180] * len(packets),
            "certificate": [1, 1, *[0] * (len(packets) - 2)],
            "fate": [row[4] for row in packets],
        }
    )


SAMPLES = samples(PACKETS)


def test_figures_count_the_packets_after_the_warm_up() -> None:
    found = named(evaluate(PARAMETERS, SAMPLES))
    assert list(found)[:3] == ["benign_share", "packet_loss", "latency_mean"], "in the order of their definitions"
    assert found == {
        "benign_share": pytest.approx(60),
        "packet_loss": pytest.approx(60),
        "latency_mean": 20,
        "latency_p50": 10,
        "latency_p95": 30,
        "latency_p99": 30,
        "latency_max": 30,
        "accept_rate": 1,
        "packet_delivery_ratio": 60,
        "lost": 3,
        "lost sender's queue": 1,
        "lost collision": 1,
        "lost receiver queue": 1,
        "goodput": pytest.approx(2 * 89 * 8 / 1000 / 2),
        "verify_time": 8000,
        "rejected_time": pytest.approx(0.4),
        "receiver_load": pytest.approx(1.2),  # three packets of 8 ms, and not the one of the warm-up
        "neighbours_served": pytest.approx(2 * (2000 - 3 * 8) / (5 * 8)),
        "airtime": pytest.approx(0.35),
        "channel_busy_ratio": pytest.approx(0.3),
        "certificate_share": 20,
        "offered_rate": 20,
    }


def test_what_dcc_held_back_counts_for_no_other_figure() -> None:
    """Three of eight CAMs that were due after the warm-up."""
    with_dcc = PARAMETERS.model_copy(update={"dcc": True})
    held_back = samples((*PACKETS, *HELD_BACK))
    found = named(evaluate(with_dcc, held_back))
    assert found.pop("held_back") == pytest.approx(100 * 3 / 8)
    assert found.pop("offered_rate") == 5 / 2, "as generated"
    without = named(evaluate(PARAMETERS, SAMPLES))
    assert found == {name: value for name, value in without.items() if name != "offered_rate"}
    rates = {curve.title: round(curve.values.sum() * 0.25) for curve in curves(with_dcc, held_back)[:4]}
    assert rates == {"Sent": 6, "Accepted": 3, "Attackers, sent": 3, "Held back by DCC": 4}
    (latency,) = distributions(with_dcc, held_back)
    assert latency.values.tolist() == [10, 30]


def test_curves_have_the_warm_up_too() -> None:
    found = {curve.title: curve for curve in curves(PARAMETERS, SAMPLES)}
    sums = {title: round(found[title].values.sum() * 0.25) for title in list(found)[:3]}
    assert sums == {"Sent": 6, "Accepted": 3, "Attackers, sent": 3}
    assert (found["p50"].values.tolist(), found["p99"].values.tolist()) == ([10, 10], [10, 30])
    assert found["p50"].t_s.tolist() == [0.625, 1.125], "intervals of a quarter of a second"
    assert found["Loss"].values.tolist() == [0, 0, 100, 100]
    (latency,) = distributions(PARAMETERS, SAMPLES)
    assert latency.values.tolist() == [10, 30]


def test_run_without_packets_has_no_figures() -> None:
    nothing = recorded({column: [] for column in SAMPLES.table("packets", "simulator")})
    assert evaluate(PARAMETERS, nothing).metrics == () and curves(PARAMETERS, nothing) == ()
    assert distributions(PARAMETERS, nothing) == ()
