"""Stations of live runs that change their identity: no packet is lost to it, and figures count stations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labconsole_v2x.panel.station_board import StationBoard
from tests.helpers.recorded_runs import record_runs
from tests.labconsole_v2x.live.live_lab import LiveLab, Outcome, is_incomplete, run, steady_run

CASES: Mapping[str, Mapping[str, Any]] = {
    "periodic": {"change": "periodic", "change_interval": 1.0, "tickets": 3, "duration": 4.0, "instances": 2},
    "all receive": {"change": "periodic", "change_interval": 1.0, "tickets": 3, "duration": 3.0, "receivers": "all"},
    "never": {"change": "periodic", "change_interval": 1.0, "tickets": 3, "duration": 2.0, "inclusion": "never"},
    "P-384": {"change": "start", "tickets": 2, "curve": "p384"},
    "none": {"tickets": 3},
}


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Outcome]:
    def run_case(folder: Path, name: str) -> Outcome:
        return steady_run(lambda: run(folder, **CASES[name]), is_incomplete)

    return record_runs(tmp_path_factory, "live-pseudonyms", LiveLab, CASES, run_case)


def names_of(outcome: Outcome) -> list[tuple[int, int, int, int, int, int]]:
    """Station, instance, MAC address, station ID, ticket, time of the change: of all but the roadside station."""
    columns = ("station", "instance", "source", "station_id", "ticket", "from_ns")
    return list(zip(*(outcome.column("stations", name).tolist() for name in columns), strict=True))


@pytest.mark.parametrize("case", ["periodic", "all receive", "never"])
def test_periodic_changes_lose_no_packet_and_count_stations(cases: Mapping[str, Outcome], case: str) -> None:
    outcome = cases[case]
    figures, parameters = outcome.figures, outcome.parameters
    assert outcome.failure is None
    assert (figures["lost"], figures["rejected"], figures["duplicates"]) == (0, 0, 0)
    assert figures["packet_delivery_ratio"] == 100
    instances = parameters.senders * parameters.instances
    assert figures["neighbours"] == instances - (parameters.receivers == "all")
    assert instances * (parameters.duration - 1) / 1.4 <= figures["identity_changes"] <= instances * parameters.duration
    assert "foreign" not in figures
    interval_ms = 1000 * parameters.instances / parameters.rate
    most_off_ms = figures["latency_max"] * interval_ms / (1000 * parameters.duration - interval_ms)
    assert figures["inter_arrival"] == pytest.approx(interval_ms, abs=most_off_ms + 1), "first and last may be late"
    assert outcome.live("delivered") == figures["accepted"]


def test_each_packet_has_the_names_of_its_time(cases: Mapping[str, Outcome]) -> None:
    outcome = cases["periodic"]
    rows = names_of(outcome)
    assert len({row[2] for row in rows}) == len({row[3] for row in rows}) == len({row[4] for row in rows}) == 18
    assert len(rows) > 18, "used tickets are used again"
    columns = ("station", "source", "due_ns")
    sent = list(zip(*(outcome.column("sent", name).tolist() for name in columns), strict=True))
    for station, source, due_ns in sent:
        own = [row for row in rows if row[2] == source]
        assert {row[0] for row in own} == {station}
        (instance,) = {row[1] for row in own}
        used = [row for row in rows if row[:2] == (station, instance) and row[5] <= due_ns]
        assert max(used, key=lambda row: row[5])[2] == source, "the newest identity at that time"


def test_change_at_start_is_made_before_the_first_packet(cases: Mapping[str, Outcome]) -> None:
    outcome = cases["P-384"]
    assert outcome.failure is None and outcome.figures["lost"] == 0
    assert len(names_of(outcome)) == 6
    changed = {row[2] for row in names_of(outcome) if row[5]}
    assert set(outcome.column("sent", "source").tolist()) == changed


def test_without_changes_each_station_keeps_one_of_its_tickets(cases: Mapping[str, Outcome]) -> None:
    outcome = cases["none"]
    assert len(names_of(outcome)) == 3
    assert (outcome.figures["identity_changes"], outcome.figures["lost"]) == (0, 0)


def test_station_changes_on_request_and_not_while_it_is_locked(tmp_path: Path) -> None:
    sent_at: list[int] = []

    def command(lab: LiveLab) -> None:
        lab.until_sent(1, 5)
        lab.command("change-identity", 2)
        lab.until_sent(1, 15)
        lab.command("lock-identity", 1, seconds=2)
        lab.command("change-identity", 1)
        lab.until_sent(1, lab.sent_by(1) + 20)
        sent_at.append(lab.sent_by(1))
        lab.until_sent(1, lab.sent_by(1) + 45)
        lab.cancel()

    outcome = LiveLab(tmp_path / "run", during=command).run(rate=20.0, duration=60.0, tickets=4, receivers="all")
    assert outcome.failure is None and outcome.figures["lost"] == 0
    rows = names_of(outcome)
    changes = sorted((row[5], row[0]) for row in rows if row[5])
    assert [station for _, station in changes] == [2, 1]
    commands = [event.t_ns for event in outcome.events_named("command")]
    assert 0 < changes[0][0] - commands[0] < 1e9
    assert 1.9e9 < changes[1][0] - commands[1] < 4e9, "at the end of the lock"
    due = np.sort(outcome.column("sent", "due_ns")[outcome.column("sent", "station") == 1])
    assert due[sent_at[0]] < changes[1][0], "it sends on under its old names"


def test_station_that_is_started_again_changes_its_identity(tmp_path: Path) -> None:
    """F-PSN-04."""

    def stop_and_start(lab: LiveLab) -> None:
        lab.until_sent(2, 3)
        lab.command("stop-station", 2)
        lab.until_sent(1, lab.sent_by(1) + 5)
        lab.command("start-station", 2)
        lab.until_sent(2, lab.sent_by(2) + 30)
        lab.cancel()

    outcome = LiveLab(tmp_path / "run", during=stop_and_start).run(rate=20.0, duration=60.0, tickets=3, change="start")
    assert outcome.failure is None and outcome.figures["lost"] == 0
    changes = [row[0] for row in names_of(outcome) if row[5]]
    assert sorted(changes) == [1, 2, 2, 3]
    numbers, sources = outcome.column("sent", "station"), outcome.column("sent", "source")
    assert [len(set(sources[numbers == number].tolist())) for number in (1, 2, 3)] == [1, 2, 1]


def test_neighbours_that_a_station_hears_are_stations_whatever_their_identities(tmp_path: Path) -> None:
    heard: list[list[int]] = []

    def watch(lab: LiveLab) -> None:
        lab.until_sent(1, 25)
        board = StationBoard()
        for _ in range(3):
            board.take(lab.context.frame())
            heard.append(sorted(board.stations[1].heard))
            lab.until_sent(1, lab.sent_by(1) + 8)
        lab.cancel()

    settings = {"tickets": 4, "change": "periodic", "change_interval": 1.0, "receivers": "all", "duration": 60.0}
    outcome = LiveLab(tmp_path / "run", during=watch).run(**settings)
    assert outcome.failure is None
    assert heard == [[2, 3]] * 3


def test_station_with_one_ticket_reports_that_it_cannot_change(tmp_path: Path) -> None:
    def command(lab: LiveLab) -> None:
        lab.until_sent(2, 3)
        lab.command("change-identity", 2)
        lab.command("lock-identity", 3, seconds=5)
        lab.until_sent(2, 8)
        lab.cancel()

    outcome = LiveLab(tmp_path / "run", during=command).run(duration=60.0)
    assert outcome.failure is None
    events = outcome.events_named("no change of identity")
    assert [event.data["station"] for event in events] == [2, 3]
    assert events[0].message == "Station 2 has one ticket: its identity stays. Set Tickets to 2 or more."
    assert len({row[2] for row in names_of(outcome)}) == 3
