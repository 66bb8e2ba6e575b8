"""The thesis' published rows: the profile's scenarios, two of them through the engine, against the printed figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from labconsole.model.plugin import Plugins
from labconsole.model.trial import Origin
from labconsole.profiles.profile import Profile, campaign_of, load_profile
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail, RunStatus
from labconsole_keypool.simulation.simulation_parameters import SimulationParameters
from labconsole_keypool.trials.simulation_trial import SimulationTrial
from tests.helpers.practice import Bench
from tests.helpers.role_threads import RoleThreads
from tests.helpers.trial_lab import Outcome, TrialLab
from tests.labconsole.cli.conftest import CommandLine
from tests.labconsole_keypool.simulated_run import simulated

LARGEST_LATENCY, DROPPED, FIRST = "latency_peak", "dropped", "first_dropped"

COMPUTER = ("resources", "machine")
"""Measured of every run, however its figures come about."""

SECTIONS = ("Section", "Table", "Appendix")

# (scenario, metric): what the source prints, and how far (part of it) the issue lets the simulation be away.
PUBLISHED = {
    ("Table 4-2: 40 per second", "queue_length"): (1028, 0.015),
    ("Table 4-2: 40 per second", LARGEST_LATENCY): (38_565, 0.015),
    ("Table 4-2: 50 per second", "queue_length"): (1422, 0.015),
    ("Table 4-2: 50 per second", LARGEST_LATENCY): (53_266, 0.015),
    ("Table 4-2: 100 per second", "queue_length"): (2217, 0.015),
    ("Table 4-2: 100 per second", LARGEST_LATENCY): (83_314, 0.015),
    ("Fig. 4-1: without pool, 769 ms a key", LARGEST_LATENCY): (1_400_000, 0.01),
    ("Fig. 4-3: with pool", LARGEST_LATENCY): (12_000, 0.01),
    ("Fig. 4-5: queue of 50, with pool", DROPPED): (17, 1 / 17),
    ("Fig. 4-5: queue of 50, with pool", FIRST): (1537, 0.04),
}

# Of each of those scenarios one parameter that the figure must follow, and which way.
MOVED = {
    "Table 4-2: 40 per second": ({"sign": "stockholm"}, "queue_length", "higher"),
    "Fig. 4-1: without pool, 769 ms a key": ({"timing": "luna-sa-1700"}, LARGEST_LATENCY, "lower"),
    "Fig. 4-3: with pool": ({"batch": 350}, LARGEST_LATENCY, "higher"),
    "Fig. 4-4: queue of 50, without pool": ({"queue_limit": 100}, DROPPED, "lower"),
    "Fig. 4-5: queue of 50, with pool": ({"sign": "malmo"}, DROPPED, "lower"),
}

ROWS = tuple(dict.fromkeys([*(scenario for scenario, _ in PUBLISHED), *MOVED]))
"""The scenarios that are simulated."""

ENGINE_ROWS = ("Fig. 4-1: without pool, 769 ms a key", "Fig. 4-3: with pool")
"""Those that go through the engine as well, each in its own processes: without and with a pool."""


SimulationOutcome = Outcome[SimulationParameters]


class SimulationLab(TrialLab[SimulationParameters, SimulationOutcome]):
    """A run in this process: the real trial, and its role in a thread."""

    trial = SimulationTrial()
    outcome = SimulationOutcome
    roles = RoleThreads


@pytest.fixture(scope="module")
def profile() -> Profile:
    return load_profile("keypool-published", Plugins.discover())


@pytest.fixture(scope="module")
def bench(profile: Profile, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Two of the profile's rows, run by a queue as a window or a terminal does it."""
    bench = Bench(tmp_path_factory.mktemp("published"), in_threads=True, live_hz=10.0)
    scenarios = tuple(scenario for scenario in profile.scenarios if scenario.name in ENGINE_ROWS)
    bench.queue.submit(campaign_of(replace(profile, scenarios=scenarios)))
    bench.pump_until_idle()
    bench.close()
    yield bench


@pytest.fixture(scope="module")
def runs(bench: Bench) -> Mapping[str, RunDetail]:
    """Runs by the name of their scenario."""
    details = [bench.detail(run_id) for run_id, _ in bench.listener.ends]
    return {detail.row.scenario: detail for detail in details}


@pytest.fixture(scope="module")
def rows(profile: Profile, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, SimulationOutcome]:
    """All rows that the issue names, run in this process."""
    folder = tmp_path_factory.mktemp("rows")
    scenarios = [scenario for scenario in profile.scenarios if scenario.name in ROWS]
    return {row.name: SimulationLab(folder / f"{number}").run(**row.parameters) for number, row in enumerate(scenarios)}


def test_every_row_is_marked_as_simulated_and_names_its_timing(rows: Mapping[str, SimulationOutcome]) -> None:
    assert set(rows) == set(ROWS)
    for row in rows.values():
        assert {metric.origin for metric in row.evaluation.metrics} == {Origin.SIMULATED}
        timing = next(event for event in row.samples.events if event.name == "timing")
        assert timing.data["timing"] == row.parameters.timing
        assert all(any(word in text for word in SECTIONS) for text in timing.data["references"].values())
        assert set(row.verdicts) == {"service level kept", "300 ms in normal hours", "3000 ms at peak"}


def test_the_engine_stores_what_such_a_run_gives(
    runs: Mapping[str, RunDetail], rows: Mapping[str, SimulationOutcome]
) -> None:
    assert set(runs) == set(ENGINE_ROWS)
    for name, run in runs.items():
        assert (run.row.status, run.row.reason) == (RunStatus.FINISHED, "")
        assert (run.metrics, run.verdicts) == (rows[name].evaluation.metrics, rows[name].evaluation.verdicts)
        assert {series.origin for series in run.series if series.name not in COMPUTER} == {Origin.SIMULATED}
        assert [event.name for event in run.events].count("timing") == 1


@pytest.mark.parametrize(("scenario", "metric"), PUBLISHED)
def test_a_published_row_is_reached(rows: Mapping[str, SimulationOutcome], scenario: str, metric: str) -> None:
    printed, tolerance = PUBLISHED[scenario, metric]
    assert rows[scenario].figures[metric] == pytest.approx(printed, rel=tolerance)


def test_fig_4_4_is_shown_as_it_comes_out_since_no_service_time_gives_both_its_figures(
    rows: Mapping[str, SimulationOutcome],
) -> None:
    figures = rows["Fig. 4-4: queue of 50, without pool"].figures
    assert figures[DROPPED] == pytest.approx(1686, abs=10), "the source: 2073"
    assert figures[FIRST] == pytest.approx(424, abs=5), "the source: 376"


def test_in_fig_4_5_keys_are_unwrapped_while_requests_are_dropped(rows: Mapping[str, SimulationOutcome]) -> None:
    """Its signing time is that of signing while keys are unwrapped."""
    samples = rows["Fig. 4-5: queue of 50, with pool"].samples
    dropped, refills = (samples.table(series, "simulator") for series in ("drops", "refills"))
    for moment in dropped["received"]:
        assert ((refills["started"] <= moment) & (moment <= refills["finished"])).any()


def test_chapter_2_s_key_generation_gives_less_than_fig_4_1(profile: Profile, tmp_path: Path) -> None:
    peaks = {}
    for scenario in profile.scenarios:
        if scenario.name.startswith("Fig. 4-1: without pool, 6") or scenario.name.endswith("588 ms a key"):
            peaks[scenario.name] = simulated(tmp_path / str(len(peaks)), **scenario.parameters).figures[LARGEST_LATENCY]
    assert peaks == pytest.approx(
        {"Fig. 4-1: without pool, 588 ms a key": 968_931, "Fig. 4-1: without pool, 673 ms a key": 1_167_716}, rel=1e-3
    )


@pytest.mark.parametrize("scenario", MOVED)
def test_changed_parameter_changes_the_figure(
    profile: Profile, rows: Mapping[str, SimulationOutcome], tmp_path: Path, scenario: str
) -> None:
    changes, metric, way = MOVED[scenario]
    parameters = next(one.parameters for one in profile.scenarios if one.name == scenario)
    moved = simulated(tmp_path / "moved", **{**parameters, **changes}).figures[metric]
    before = rows[scenario].figures[metric]
    assert moved > before * 1.02 if way == "higher" else moved < before * 0.98


def test_stored_samples_alone_give_the_same_figures_again(bench: Bench, runs: Mapping[str, RunDetail]) -> None:
    trial = SimulationTrial()
    with Reader(bench.database) as reader:
        for run in runs.values():
            parameters = trial.parameters.model_validate(dict(run.row.parameters))
            again = trial.evaluate(parameters, reader.samples(run.row.id), ())
            assert (again.metrics, again.verdicts) == (run.metrics, run.verdicts)


def test_terminal_shows_printed_figures_next_to_the_runs(
    bench: Bench, runs: Mapping[str, RunDetail], tmp_path: Path
) -> None:
    numbers = [str(runs[name].row.id) for name in ("Fig. 4-1: without pool, 769 ms a key", "Fig. 4-3: with pool")]
    published = ("--published", "keypool-figures-4-1-to-4-5/figure-4-1")
    done = CommandLine(tmp_path)("compare", *numbers, *published, "--db", bench.database)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("Latency, largest"))
    assert line.split()[-3:] == ["s", "1,410", "1,400*"], "in one readable unit, theirs right of ours"
    assert "* Published by the source" in done.stdout


def test_a_mistake_at_the_terminal_is_one_sentence_before_anything_runs(tmp_path: Path) -> None:
    done = CommandLine(tmp_path)("run", "keypool-published", "--set", "timing=luna")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "labconsole: Profile keypool-published.toml: timing: no timing profile is called luna"
    )
    assert len(done.stderr.splitlines()) == 1
