"""Figs. 4.3 and 4.4 of PRESERVE D3.2, simulated: how far from the values that the text states."""

from __future__ import annotations

from functools import cache
from statistics import fmean
from typing import Any

import pytest

from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from tests.labconsole_v2x.simulation.simulated_testbed import figures, published_radio

TIMING = "nexcom-vtc6201-fig43-44"


@cache
def means(senders: int, rate: float, security: str, **changes: Any) -> dict[str, float]:
    """The figures that two runs have, each their mean."""
    given = {"senders": senders, "rate": rate, "security": security, "timing": TIMING, **published_radio(), **changes}
    parameters = SimulationParameters.model_validate(given)
    one, other = (figures(parameters, seed) for seed in (1, 2))
    return {name: fmean((one[name], other[name])) for name in one.keys() & other.keys()}


@pytest.mark.parametrize("security", ["full", "header"])
@pytest.mark.parametrize(("rate", "stated_ms"), [(1.0, 17.1), (10.0, 20.4), (100.0, 600.0)])
def test_latency_is_near_that_of_the_source_in_both_configurations(
    security: str, rate: float, stated_ms: float
) -> None:
    """20.4 ms are stated for full security alone; that the other one differs, the source calls insignificant."""
    assert means(5, rate, security)["latency_mean"] == pytest.approx(stated_ms, rel=0.12)


@pytest.mark.parametrize("security", ["full", "signed"])
def test_loss_of_secured_packets_is_that_of_the_source(security: str) -> None:
    """Most are lost by the receiver's queue; the channel is half idle."""
    assert means(15, 100.0, security)["packet_loss"] == pytest.approx(85, abs=1)
    assert means(15, 100.0, security)["channel_busy_ratio"] < 60


def test_packets_without_security_are_lost_by_collisions_alone() -> None:
    assert means(15, 100.0, "none")["packet_loss"] == pytest.approx(1.41, abs=2)
    assert means(15, 100.0, "none", medium="ideal")["packet_loss"] == 0


def test_asic_takes_longer_than_the_stack_without_it() -> None:
    software = means(5, 20.0, "full")["verify_time"]
    assert software == pytest.approx(4440)
    assert means(5, 20.0, "full", timing="nexcom-vtc6201-asic")["verify_time"] == pytest.approx(8600)
