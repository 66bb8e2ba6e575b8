"""The simulation as a run: stored samples, live values, figures and curves."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from labconsole.errors import UserError
from labconsole.model.trial import Curve
from labconsole_keypool.simulation.simulation_parameters import SimulationParameters
from labconsole_keypool.trials.simulation_trial import SimulationTrial
from tests.labconsole_keypool.simulated_run import Simulated, simulated

BIN = 2 ** (1 / 64) - 1
"""The middle of a bin of the live histogram is at most this far (1.1 %) from any value in it."""
TRIAL = SimulationTrial()


def curves(run: Simulated) -> dict[str, Curve]:
    return {curve.title: curve for curve in TRIAL.curves(run.parameters, run.samples, ())}


@pytest.mark.parametrize("settings", [{"queue_limit": 50, "sign": "while-unwrapping"}, {"requests": 100, "rate": 60.0}])
def test_the_last_live_frame_agrees_with_the_stored_figures(tmp_path: Path, settings: dict[str, object]) -> None:
    run = simulated(tmp_path / "run", **settings)
    figures, live = run.figures, run.live
    assert live["simulated"].count == figures["requests"]
    assert (live["dropped"].count if "dropped" in live else 0) == figures["dropped"]
    latency = live["latency"]
    assert latency.count == latency.histogram.count == figures["processed"]
    assert latency.maximum == figures["latency_peak"] * 1e6
    for name, fraction in (("latency_p50", 0.5), ("latency_p99", 0.99)):
        assert latency.histogram.quantile(fraction) == pytest.approx(figures[name] * 1e6, rel=BIN)


def test_every_request_is_stored_once_signed_or_dropped(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", arrivals="poisson", requests=45_000, rate=60.0, queue_limit=40)
    signed = run.samples.table("requests", "simulator")
    dropped = run.samples.table("drops", "simulator")
    assert len(dropped["request"]) > 0
    numbers = np.concatenate((signed["request"], dropped["request"]))
    assert np.array_equal(np.sort(numbers), np.arange(1, 45_001))
    in_order = [signed[name] for name in ("received", "started", "got_key", "finished")]
    assert all((before <= after).all() for before, after in pairwise(in_order))
    assert run.figures["queue_length_peak"] == 40


def test_a_scenario_gives_the_same_samples_again_and_another_seed_gives_others(tmp_path: Path) -> None:
    settings = {"arrivals": "poisson", "requests": 500, "rate": 45.0}
    one, again, other = (
        simulated(tmp_path / name, seed=seed, **settings) for name, seed in (("one", 1), ("again", 1), ("other", 2))
    )
    assert one.evaluation == again.evaluation
    assert one.figures["latency_mean"] != other.figures["latency_mean"]


def test_keys_come_from_ram_then_store_then_pool_and_are_generated_at_last(tmp_path: Path) -> None:
    run = simulated(
        tmp_path / "run",
        arrivals="constant",
        rate=1.0,
        requests=10,
        keys_at_start=2,
        store_keys=3,
        pool_keys=4,
        batch=4,
        refill="when-empty",
    )
    assert run.sources == {"token RAM": 2, "token store": 3, "pool": 4, "generated": 1}
    assert run.figures["key_preparation_mean"] == pytest.approx(588 / 10)
    keys = curves(run)["Keys"]
    assert (keys.values[0], keys.values.min(), keys.values[-1]) == (5, 0, 0)


@pytest.mark.parametrize("refill", ["parallel", "when-empty"])
def test_there_are_never_fewer_than_no_keys(tmp_path: Path, refill: str) -> None:
    run = simulated(tmp_path / "run", keys_at_start=500, batch=175, low_water=50, refill=refill)
    keys = curves(run)["Keys"]
    assert keys.values.min() >= 0
    assert keys.values.max() <= 500
    assert (np.diff(keys.t_s) >= 0).all()


def test_curves_show_latency_queue_and_arrivals_and_dropped_ones_beneath_zero(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", queue_limit=50, sign="while-unwrapping")
    drawn, figures = curves(run), run.figures
    assert drawn["Latency"].values.max() == figures["latency_peak"]
    below = drawn["Dropped"].values[~np.isnan(drawn["Dropped"].values)]
    assert len(below) == figures["dropped"] and (below < 0).all()
    assert (drawn["Waiting"].values.max(), drawn["Waiting"].values[-1]) == (50, 0)
    assert drawn["Waiting"].t_s[-1] == pytest.approx(1072.1, abs=0.2), "as long as the run, though the queue is empty"
    assert drawn["Arrivals"].values.max() == pytest.approx(100, rel=0.07)
    assert {curve.title for curve in TRIAL.curves(run.parameters, run.samples, ())} == drawn.keys()


def test_without_pool_no_keys_are_drawn_and_a_single_request_has_no_rate(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", keys="generated", arrivals="constant", requests=1)
    assert curves(run).keys() == {"Latency", "Waiting"}
    assert run.figures["latency_peak"] == 608
    assert "recovery_time" not in run.figures


def test_the_time_in_which_an_overload_is_won_back_is_that_of_the_formula(tmp_path: Path) -> None:
    """40/s for 75 s leave Q = 1026; at 10/s afterwards each second wins back 1 / Si - 10."""
    run = simulated(
        tmp_path / "run",
        arrivals="constant",
        rate=40.0,
        sign="stockholm-base-rate",
        tail_requests=1000,
        tail_rate=10.0,
    )
    assert run.figures["queue_length_peak"] == pytest.approx(1026, abs=1)
    assert run.figures["recovery_time"] == pytest.approx(1026 / (1000 / 38 - 10), rel=0.01)


def test_arrivals_with_text_in_them_end_the_run_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "arrivals.csv"
    file.write_text("10,100\nten,100\n")
    with pytest.raises(UserError, match=r"arrivals\.csv, line 2: .* \(it is 'ten'\)\.$"):
        simulated(tmp_path / "run", arrivals="csv", csv=str(file))
    file.write_text("10,100\n20,5\n")
    assert simulated(tmp_path / "again", arrivals="csv", csv=str(file)).figures["requests"] == 30


def test_a_cancelled_run_stores_no_more_requests(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", stopped_after=0)
    assert run.samples.roles("requests") == []
    assert run.evaluation.metrics == ()


def test_samples_of_a_cancelled_run_end_with_its_last_request(tmp_path: Path) -> None:
    """Queue and refills reach no further than the requests that are there, as if no other had come."""
    settings = {"arrivals": "constant", "rate": 60.0, "keys_at_start": 2000}
    halfway = simulated(tmp_path / "halfway", requests=45_000, stopped_after=2, **settings)
    count = int(halfway.figures["requests"])
    assert 0 < count < 45_000
    assert halfway.samples.table("queue", "simulator")["length"][-1] == 0, "who was there has been signed"
    alone = simulated(tmp_path / "alone", requests=count, **settings)
    assert halfway.evaluation == alone.evaluation
    for series in ("requests", "queue", "refills"):
        one, other = (run.samples.table(series, "simulator") for run in (halfway, alone))
        assert {name: values.tolist() for name, values in one.items()} == {k: v.tolist() for k, v in other.items()}
    drawn = zip(TRIAL.curves(halfway.parameters, halfway.samples, ()), curves(alone).values(), strict=True)
    assert all(np.array_equal(one.t_s, other.t_s) for one, other in drawn)


def test_a_stop_is_heard_while_it_computes(tmp_path: Path) -> None:
    """Half a million requests would take a second and more; a part of them takes a hundredth of that."""
    run = simulated(tmp_path / "run", arrivals="poisson", requests=500_000, rate=50.0, stopped_after=1)
    assert run.figures["requests"] <= 10_000


def test_two_scenarios_are_a_fair_pair_if_one_thing_that_matters_differs() -> None:
    pool, without = SimulationParameters(keys_at_start=100), SimulationParameters(keys="generated")
    assert TRIAL.contrast(without, pool) == "Key pool against keys generated on the fly"
    assert TRIAL.contrast(pool, without) == ""
    assert TRIAL.contrast(without, SimulationParameters(queue_limit=50)) == ""
    short = SimulationParameters(queue_limit=50)
    assert TRIAL.contrast(short, SimulationParameters(queue_limit=150)) == "Queue limit: 150 against 50"
    assert TRIAL.contrast(short, short) == TRIAL.contrast(short, SimulationParameters(threads=2)) == ""


def test_values_are_named_as_the_form_names_them() -> None:
    waiting, parallel = SimulationParameters(refill="when-empty"), SimulationParameters(refill="parallel")
    assert TRIAL.contrast(waiting, parallel) == "Refill: Parallel to signing against When the token is empty"


@pytest.mark.parametrize("change", [{"rate": 40.0}, {"requests": 2000}, {"time_scale": 2.0}, {"tail_requests": 9}])
def test_runs_with_other_arrivals_are_not_comparable(change: dict[str, float]) -> None:
    load = {"arrivals": "constant", "rate": 50.0}
    one, other = SimulationParameters(**load), SimulationParameters(**{**load, **change})
    assert TRIAL.contrast(one, other) == "" and not TRIAL.comparable(one, other)
    assert TRIAL.comparable(one, SimulationParameters(**load, queue_limit=9, threads=2))
    assert TRIAL.contrast(SimulationParameters(**load), SimulationParameters(arrivals="poisson", rate=50.0)) == ""


def test_warnings_state_the_simulation_and_its_timing_profile() -> None:
    (warning,) = TRIAL.warnings(SimulationParameters(timing="luna-sa-1700-fig4-1"))
    assert "luna-sa-1700-fig4-1" in warning and "no real time passed" in warning
    empty = TRIAL.warnings(SimulationParameters(keys_at_start=0, pool_keys=0))
    assert empty[1:] == ("The pool is empty: every request generates its key pair, as without a pool.",)
