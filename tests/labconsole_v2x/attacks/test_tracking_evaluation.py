"""A-PSN-01 in live runs: figures and verdict by their definitions, on real packets of vehicles whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from labconsole.model.trial import Evaluation, Verdict
from labconsole_v2x.attacks.attack_evaluation import evaluate
from labconsole_v2x.attacks.attack_parameters import AttackParameters
from labconsole_v2x.attacks.listener_role import OBSERVATIONS, observation_row, observations
from labconsole_v2x.attacks.tracking import Observation
from labconsole_v2x.live.series import RECEIVED, SENT, STATIONS
from labconsole_v2x.stations.sending import ALL_LAYERS, Layer
from tests.helpers.recorded_runs import record_runs
from tests.labconsole_v2x.attacks.attack_lab import AttackLab, run
from tests.labconsole_v2x.attacks.tracked_stations import Drive
from tests.labconsole_v2x.live.live_lab import Outcome
from tests.labconsole_v2x.live.synthetic_packets import EVENTS, T0_NS, Tables, named

ALL_CHANGED, ONE_LEFT = "no identifier links pseudonyms", "the tracker links by what was left unchanged"
VEHICLES, CHANGES = 4, 2


def heard(drive: Drive) -> list[Observation]:
    """What the tracker hears of a drive."""
    return sorted((one for track in drive.tracks() for one in track.observations), key=lambda one: one.time_us)


def evaluated(
    drive: Drive, unchanged: str = "none", *, before_us: int | None = None, duration: float = 12.0
) -> Evaluation:
    """The evaluation of a drive, of which the tracker hears what was sent before a time since the first packet."""
    seen = heard(drive)
    tables = Tables()
    begun_us = seen[0].time_us
    rows: dict[tuple[Any, ...], tuple[int, ...]] = {}
    for one in seen:
        if one.station_id is not None and one.digest is not None:
            names = (one.mac, one.gn_mac, one.digest, one.station_id)
            source, ticket = (int.from_bytes(octets, "big") for octets in (one.mac, one.digest))
            changed_ns = 0 if one.time_us - begun_us < 1_000_000 else T0_NS + (one.time_us - begun_us) * 1000
            rows.setdefault(names, (1 + drive.truth[names], 0, source, one.station_id, ticket, changed_ns))
    tables.add(STATIONS, "stations-1-4", list(rows.values()))
    tables.add(SENT, "stations-1-4", [])
    tables.add(RECEIVED, "receiver", [])
    kept = [one for one in seen if before_us is None or one.time_us - begun_us < before_us]
    tables.add(OBSERVATIONS, "tracker", [observation_row(T0_NS + (one.time_us - begun_us) * 1000, one) for one in kept])
    parameters = AttackParameters(
        senders=VEHICLES,
        attack="a-psn-01",
        change="together",
        tickets=10,
        unchanged=unchanged,
        warm_up=0.0,
        duration=duration,
    )
    return evaluate(parameters, tables, EVENTS)


def verdict(evaluation: Evaluation) -> Verdict:
    (found,) = (one for one in evaluation.verdicts if one.name in (ALL_CHANGED, ONE_LEFT))
    return found


def test_observations_are_read_as_they_were_recorded() -> None:
    seen = heard(Drive(vehicles=2, changes=1))
    assert any(one.path for one in seen) and any(one.sequence_number is not None for one in seen)
    tables = Tables()
    tables.add(OBSERVATIONS, "tracker", [observation_row(one.time_us * 1000 + 7, one) for one in seen])
    read = observations(tables)
    assert [one._replace(speed=0, heading=0) for one in read] == [one._replace(speed=0, heading=0) for one in seen]
    assert [one.speed for one in read] == pytest.approx([one.speed for one in seen])


def test_change_of_all_layers_is_linked_by_motion_alone() -> None:
    evaluation = evaluated(Drive(vehicles=VEHICLES, changes=CHANGES))
    found, judged = named(evaluation), verdict(evaluation)
    assert (found["linked_by_identifiers"], found["linked_by_motion"], found["wrong_links motion"]) == (0, 100, 0)
    assert {one.samples for one in evaluation.metrics if one.name.startswith("linked_by")} == {VEHICLES * CHANGES}
    assert (judged.name, judged.result) == (ALL_CHANGED, "pass")
    assert judged.reason == "None of 8 changes is linked by an identifier."


@pytest.mark.parametrize("layer", sorted(ALL_LAYERS - {Layer.SEQUENCE_NUMBERS}))
def test_layer_that_was_left_is_found_and_nothing_else_passes_for_it(layer: Layer) -> None:
    drive = Drive(vehicles=VEHICLES, changes=CHANGES, layers=ALL_LAYERS - {layer})
    chosen = layer.name.lower().replace("_", "-")
    evaluation = evaluated(drive, chosen)
    judged = verdict(evaluation)
    assert named(evaluation)["linked_by_identifiers"] == 100
    assert (judged.name, judged.result) == (ONE_LEFT, "pass")
    assert verdict(evaluated(drive)).result == "fail", "all layers were said to change"
    other = "ticket" if layer is not Layer.TICKET else "station-id"
    assert verdict(evaluated(drive, other)).result == "fail", "another one links"


def test_change_of_the_last_second_does_not_count() -> None:
    """The drive changes after 4 and 8 s: with 9 s that count the second one is too late."""
    drive = Drive(vehicles=VEHICLES, changes=CHANGES)
    evaluation = evaluated(drive, duration=9.0)
    assert {one.samples for one in evaluation.metrics if one.name.startswith("linked_by")} == {VEHICLES}
    assert verdict(evaluation).result == "pass"


def test_tracker_that_missed_changes_proves_nothing() -> None:
    """Of two changes of each vehicle it hears the first."""
    evaluation = evaluated(Drive(vehicles=VEHICLES, changes=CHANGES), before_us=7_000_000)
    judged = verdict(evaluation)
    assert (judged.result, judged.reason) == (
        "unknown",
        "The tracker has heard 4 of 8 changes; at least 95 % are needed.",
    )
    assert verdict(evaluated(Drive(vehicles=VEHICLES, changes=CHANGES), before_us=0)).result == "unknown"


CASES: Mapping[str, Mapping[str, Any]] = {
    "nothing": {},
    "at once": {"change": "together"},
    "station ID": {"unchanged": "station-id"},
    "path history": {"unchanged": "path-history"},
}


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Outcome]:
    settings = {"attack": "a-psn-01", "change": "periodic", "change_interval": 1.0, "tickets": 8, "duration": 3.0}
    run_case = lambda folder, name: run(folder, **{**settings, **CASES[name]})  # noqa: E731
    return record_runs(tmp_path_factory, "tracked-stations", AttackLab, CASES, run_case)


@pytest.mark.parametrize("case", CASES)
def test_tracker_of_a_run_links_what_was_left_and_costs_no_cam(cases: Mapping[str, Outcome], case: str) -> None:
    outcome, left = cases[case], "unchanged" in CASES[case]
    assert outcome.failure is None
    figures = outcome.figures
    assert figures["linked_by_identifiers"] == (100 if left else 0)
    assert figures["linked_by_motion"] >= 75
    assert (figures["lost"], figures["benign_share"]) == (0, 100) and "attack_sent" not in figures
    assert outcome.verdicts[ONE_LEFT if left else ALL_CHANGED] == "pass"
    changed_ns = outcome.column("stations", "from_ns")
    made = int(np.count_nonzero((changed_ns > 0) & (changed_ns < outcome.begin_ns + 2.5e9)))
    assert made >= 6
    assert {one.samples for one in outcome.evaluation.metrics if one.name.startswith("linked_by")} == {made}
    assert outcome.samples.roles("observations") == ["tracker"] and "tracker" not in outcome.samples.roles("sent")


def test_stations_change_at_once_where_they_shall(cases: Mapping[str, Outcome]) -> None:
    spans = {}
    for case in ("nothing", "at once"):
        changed = cases[case].column("stations", "from_ns")
        spans[case] = np.ptp(np.sort(changed[changed > 0])[:3]) / 1e6
    assert spans["at once"] <= 100 < spans["nothing"]
