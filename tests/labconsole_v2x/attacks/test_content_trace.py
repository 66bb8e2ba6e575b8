"""Rates of the plausibility checks on a labelled trace, as the documentation has them."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from labconsole_v2x.attacks.attack_evaluation import LEAST_DETECTED, MOST_FALSE_ALARMS
from tests.helpers.shared_once import shared_once
from tests.labconsole_v2x.attacks.content_trace import Detections, FalseContent, TraceSettings, judge, labelled_trace


@pytest.fixture(scope="module")
def detections(tmp_path_factory: pytest.TempPathFactory) -> dict[FalseContent | None, Detections]:
    """Those of a trace with the noise of sensors: 20 stations, 5 attackers of each kind, a minute."""

    def create(folder: Path) -> None:
        (folder / "detections").write_bytes(pickle.dumps(judge(labelled_trace(TraceSettings()))))

    folder = shared_once(tmp_path_factory, "content-detections", create)
    found: dict[FalseContent | None, Detections] = pickle.loads((folder / "detections").read_bytes())
    return found


@pytest.mark.parametrize("content", FalseContent)
def test_attackers_are_found_within_a_second(
    detections: dict[FalseContent | None, Detections], content: FalseContent
) -> None:
    found = detections[content]
    assert found.streams_within_1_s == found.streams == 5
    assert found.rate >= LEAST_DETECTED


def test_genuine_stations_raise_no_alarm(detections: dict[FalseContent | None, Detections]) -> None:
    """F-CON-01: with turns, braking, noise, jitter, lost packets and changes of pseudonym."""
    genuine = detections[None]
    assert genuine.cams > 11_000 and genuine.streams == 20
    assert genuine.rate <= MOST_FALSE_ALARMS


@pytest.mark.parametrize("part", [1 / 3, pytest.param(1.0, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    "settings",
    [
        TraceSettings(attackers=0, position_m=0.3, seed=2),
        TraceSettings(attackers=0, position_m=2.0, seed=3),
        TraceSettings(attackers=0, rate=1.0, seconds=300, seed=4),
        TraceSettings(attackers=0, loss=0.3, jitter_ms=50, seed=5),
    ],
    ids=["exact", "noisy", "rare", "lossy"],
)
def test_genuine_stations_raise_no_alarm_whatever_their_sensors_and_channel(
    settings: TraceSettings, part: float
) -> None:
    """In the first third of each trace; at night in the whole."""
    trace = labelled_trace(replace(settings, seconds=settings.seconds * part))
    assert judge(trace)[None].rate <= MOST_FALSE_ALARMS


def test_trace_is_that_of_its_seed() -> None:
    short = TraceSettings(stations=3, attackers=1, seconds=3)
    assert labelled_trace(short) == labelled_trace(short)
    assert labelled_trace(short) != labelled_trace(TraceSettings(stations=3, attackers=1, seconds=3, seed=2))
    tickets = {received.ticket for received in labelled_trace(TraceSettings(attackers=0, stations=1, seconds=41))}
    assert len(tickets) == 3, "a station changes its pseudonym each 20 s"
