"""The simulated signing service: the thesis' published rows, closed forms of queueing, and what holds of every run."""

from __future__ import annotations

import ast
import inspect
import time
from dataclasses import replace
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from labconsole.profiles.timing_profile import Duration, RangeEnd, load_timing
from labconsole_keypool.choices import ArrivalPattern, KeyOrigin, KeySource, Refill, SignTime
from labconsole_keypool.simulation import service_model, simulator
from labconsole_keypool.simulation.service_model import ServiceModel
from labconsole_keypool.simulation.simulator import (
    NEVER_NS,
    Outcome,
    Simulation,
    simulate,
)
from tests.helpers.arrivals import make_arrivals

MS = 1_000_000
LUNA, FIG_4_1 = load_timing("luna-sa-1700"), load_timing("luna-sa-1700-fig4-1")
ENOUGH_KEYS = 10_000


def pooled(sign_ms: float, **changes: Any) -> ServiceModel:
    """A service whose keys were made ahead of time, more than are needed."""
    model = ServiceModel(sign_ms, LUNA.key_generation.shortest_ms, LUNA.unwrap.ms, KeySource.POOL, ENOUGH_KEYS)
    return replace(model, **changes)


def generating(sign_ms: float, key_generation_ms: float) -> ServiceModel:
    """A service that generates a key pair for each request."""
    return ServiceModel(sign_ms, key_generation_ms, LUNA.unwrap.ms, KeySource.GENERATED)


def latencies_ms(outcome: Outcome) -> NDArray[np.float64]:
    """From received to finished, of the requests that were processed."""
    return (outcome.finished - outcome.received)[~outcome.dropped] / MS


def first_dropped(outcome: Outcome) -> int:
    """Number of the first dropped request, counted from 1 as in the thesis."""
    return int(np.flatnonzero(outcome.dropped)[0]) + 1


class TestPublishedRows:
    """Each with the parameter that decides it moved, so that no figure can be looked up."""

    @pytest.mark.parametrize(
        ("rate", "queue_length", "latency_s"), [(40, 1028, 38.565), (50, 1422, 53.266), (100, 2217, 83.314)]
    )
    def test_table_4_2_queue_and_latency_above_the_base_rate(
        self, rate: float, queue_length: int, latency_s: float
    ) -> None:
        arrivals = make_arrivals(ArrivalPattern.CONSTANT, rate=rate)
        outcome = simulate(arrivals, pooled(LUNA.sign[SignTime.STOCKHOLM_BASE_RATE].ms), queue_limit=0)
        assert np.count_nonzero(outcome.started > arrivals[-1]) == pytest.approx(queue_length, rel=0.015)
        assert latencies_ms(outcome)[-1] == pytest.approx(latency_s * 1000, rel=0.015)
        sooner = simulate(arrivals, pooled(37), queue_limit=0)
        assert latencies_ms(outcome)[-1] - latencies_ms(sooner)[-1] == 3000

    def test_section_4_5_1_base_rate_is_between_26_3_and_27(self) -> None:
        peaks = [
            latencies_ms(simulate(make_arrivals(ArrivalPattern.CONSTANT, rate=rate), pooled(38), queue_limit=0)).max()
            for rate in (25, 26.3, 27)
        ]
        assert peaks[0] == peaks[1] == 38
        assert peaks[2] > 1000

    def test_fig_4_1_peak_latency_without_pool(self) -> None:
        sign_ms = LUNA.sign[SignTime.STOCKHOLM].ms
        peaks = [
            latencies_ms(
                simulate(make_arrivals(), generating(sign_ms, profile.key_generation.at(end)), queue_limit=0)
            ).max()
            for profile, end in (
                (FIG_4_1, RangeEnd.SHORTEST),
                (LUNA, RangeEnd.SHORTEST),
                (LUNA, RangeEnd.LONGEST),
            )
        ]
        assert peaks[0] == pytest.approx(1_400_000, rel=0.01)
        assert peaks[1:] == pytest.approx([970_000, 1_170_000], rel=0.005)

    @pytest.mark.parametrize("sign_time", [SignTime.MALMO, SignTime.STOCKHOLM])
    def test_fig_4_3_peak_latency_with_pool(self, sign_time: SignTime) -> None:
        model = pooled(LUNA.sign[sign_time].ms, keys_at_start=2300, pool_keys=3000, batch=175)
        outcome = simulate(make_arrivals(), model, queue_limit=0)
        peak = latencies_ms(outcome).max()
        assert peak == pytest.approx(12_000, rel=0.01)
        assert latencies_ms(outcome).argmax() == 2300
        for moved, moved_ms in (
            (replace(model, batch=176), 70),
            (replace(model, unwrap_ms=71), 175),
            (replace(model, keys_at_start=2200), 100),
        ):
            assert latencies_ms(simulate(make_arrivals(), moved, queue_limit=0)).max() == peak + moved_ms

    def test_fig_4_5_dropped_requests_with_pool(self) -> None:
        outcome = simulate(make_arrivals(), pooled(LUNA.sign[SignTime.WHILE_UNWRAPPING].ms), queue_limit=50)
        assert abs(np.count_nonzero(outcome.dropped) - 17) <= 1
        assert first_dropped(outcome) == pytest.approx(1537, rel=0.04)
        assert not simulate(make_arrivals(), pooled(LUNA.sign[SignTime.MALMO].ms), queue_limit=50).dropped.any()
        for site, dropped in ((SignTime.STOCKHOLM, 134), (SignTime.STOCKHOLM_BASE_RATE, 119)):
            assert simulate(make_arrivals(), pooled(LUNA.sign[site].ms), queue_limit=50).dropped.sum() == dropped
        assert not simulate(
            make_arrivals(), pooled(LUNA.sign[SignTime.WHILE_UNWRAPPING].ms), queue_limit=67
        ).dropped.any()

    def test_fig_4_4_has_no_service_time_that_gives_both_of_its_numbers(self) -> None:
        outcomes = [simulate(make_arrivals(), generating(20, ms), queue_limit=50) for ms in range(780, 1300, 10)]
        right_count = [abs(outcome.dropped.sum() / 2073 - 1) < 0.02 for outcome in outcomes]
        right_first = [abs(first_dropped(outcome) / 376 - 1) < 0.02 for outcome in outcomes]
        assert any(right_count)
        assert any(right_first)
        assert not any(count and first for count, first in zip(right_count, right_first, strict=True))

    def test_section_5_1_threads_shorten_3000_requests_from_60_s_to_6_s(self) -> None:
        at_once = np.zeros(3000, np.int64)
        for threads, duration_ms in ((1, 60_000), (10, 6_000)):
            outcome = simulate(at_once, pooled(LUNA.sign[SignTime.MALMO].ms, threads=threads), queue_limit=0)
            assert outcome.finished.max() == duration_ms * MS

    def test_section_2_9_9_150_waiting_requests_take_3020_ms_at_most(self) -> None:
        arrivals = make_arrivals(ArrivalPattern.CONSTANT, rate=90)
        peaks = {
            limit: latencies_ms(simulate(arrivals, pooled(20), queue_limit=limit)).max() for limit in (149, 150, 151)
        }
        assert peaks[149] <= 3000 < peaks[150] <= 3020 < peaks[151]

    def test_appendix_b_keys_are_taken_from_ram_then_store_then_pool_then_generated(self) -> None:
        model = pooled(20, keys_at_start=1000, store_keys=1000, pool_keys=1000, batch=300)
        outcome = simulate(make_arrivals(ArrivalPattern.CONSTANT, requests=3100, rate=1), model, queue_limit=0)
        origins = [KeyOrigin.TOKEN_RAM, KeyOrigin.TOKEN_STORE, KeyOrigin.POOL, KeyOrigin.GENERATED]
        assert outcome.key_source.tolist() == np.repeat(origins, [1000, 1000, 1000, 100]).tolist()
        assert outcome.refills.count.tolist() == [300, 300, 300, 100]
        preparation_ms = (outcome.got_key - outcome.started) / MS
        assert preparation_ms[:2000].max() == 0
        assert preparation_ms[3000:].min() == preparation_ms[3000:].max() == 588


class TestClosedForms:
    def test_under_constant_overload_each_request_waits_longer_by_the_same_time(self) -> None:
        arrivals = make_arrivals(ArrivalPattern.CONSTANT, rate=50, requests=1000)
        latency_ms = latencies_ms(simulate(arrivals, pooled(38), queue_limit=0))
        assert latency_ms == pytest.approx(38 + 18 * np.arange(1000))

    @pytest.mark.parametrize("tail_rate", [1.0, 5.0, 20.0])
    def test_recovery_time_is_the_backlog_over_the_free_capacity_of_the_tail(self, tail_rate: float) -> None:
        arrivals = make_arrivals(
            ArrivalPattern.CONSTANT, rate=50, requests=1000, tail_requests=2000, tail_rate=tail_rate
        )
        outcome = simulate(arrivals, pooled(38), queue_limit=0)
        undone_s = 1000 * (0.038 - 0.020)
        waiting = (outcome.started > outcome.received)[1000:]
        assert waiting.tolist() == (np.arange(2000) < undone_s / (1 / tail_rate - 0.038)).tolist()

    def test_in_fig_4_2_each_later_request_waits_shorter_by_the_free_part_of_a_second(self) -> None:
        outcome = simulate(make_arrivals(tail_requests=2000), generating(43, 769), queue_limit=0)
        assert np.diff(latencies_ms(outcome)[3000:]) == pytest.approx(769 + 43 - 1000)
        assert latencies_ms(outcome)[-1] > 900_000

    def test_poisson_arrivals_wait_by_the_formula_of_pollaczek_and_khinchine(self) -> None:
        arrivals = make_arrivals(ArrivalPattern.POISSON, requests=200_000, rate=40)
        outcome = simulate(arrivals, pooled(20, keys_at_start=200_000), queue_limit=0)
        wait_ms = (outcome.started - outcome.received).mean() / MS
        assert wait_ms == pytest.approx(0.8 * 20 / (2 * (1 - 0.8)), rel=0.04)


class TestGeneration:
    def test_several_threads_wait_for_one_device_that_generates(self) -> None:
        model = replace(generating(10, 500), threads=4)
        outcome = simulate(np.zeros(6, np.int64), model, queue_limit=0)
        assert (outcome.got_key / MS).tolist() == [500, 1000, 1500, 2000, 2500, 3000]
        two = simulate(np.zeros(6, np.int64), replace(model, generators=2), queue_limit=0)
        assert (two.got_key / MS).tolist() == [500, 500, 1000, 1000, 1500, 1500]

    def test_the_profile_s_devices_generate_one_key_pair_at_a_time(self) -> None:
        assert LUNA.key_generation.at_a_time == FIG_4_1.key_generation.at_a_time == 1


@pytest.mark.parametrize("part", [1, 64, 299])
def test_part_by_part_the_same_comes_out(part: int) -> None:
    arrivals = np.cumsum(np.random.default_rng(3).choice([0, 1, 40], 300)) * MS
    keys = {"keys_at_start": 20, "store_keys": 20, "pool_keys": 60, "batch": 30, "low_water": 10}
    model = pooled(20, **keys, refill=Refill.PARALLEL, threads=2, key_generation_ms=90)
    whole, simulator = simulate(arrivals, model, queue_limit=30), Simulation(model, queue_limit=30)
    parts = [simulator.follow(arrivals[begin : begin + part]) for begin in range(0, 300, part)]
    for name in ("received", "started", "got_key", "finished", "key_source", "dropped"):
        assert np.concatenate([getattr(one, name) for one in parts]).tolist() == getattr(whole, name).tolist()
    for name in ("count", "started", "finished"):
        assert np.concatenate([getattr(one.refills, name) for one in parts]).tolist() == (
            getattr(whole.refills, name).tolist()
        )
    assert set(whole.key_source) == set(KeyOrigin)


class TestRefill:
    def test_in_parallel_begins_below_low_water_and_gives_keys_one_by_one(self) -> None:
        model = pooled(10, keys_at_start=3, pool_keys=100, batch=3, low_water=2, refill=Refill.PARALLEL)
        outcome = simulate(np.arange(8) * 100 * MS, model, queue_limit=0)
        # The second request leaves one key, fewer than two: from 100 ms on keys come at 170, 240 and 310 ms.
        assert (outcome.refills.started[:2] / MS).tolist() == [100, 400]
        assert (outcome.refills.finished[:2] / MS).tolist() == [310, 610]
        assert latencies_ms(outcome) == pytest.approx(10)
        hasty = simulate(np.arange(4) * 10 * MS, replace(model, keys_at_start=1), queue_limit=0)
        assert (hasty.got_key / MS).tolist() == [0, 70, 140, 210]

    @pytest.mark.parametrize("low_water", [0, 1])
    def test_in_parallel_begins_at_the_latest_when_there_are_none(self, low_water: int) -> None:
        model = pooled(10, keys_at_start=1, pool_keys=2, batch=1, low_water=low_water, refill=Refill.PARALLEL)
        outcome = simulate(np.zeros(3, np.int64), model, queue_limit=0)
        assert (outcome.got_key / MS).tolist() == [0, 70, 140]

    def test_continues_while_the_loader_is_behind(self) -> None:
        model = pooled(10, keys_at_start=0, pool_keys=6, batch=2, low_water=3, refill=Refill.PARALLEL)
        outcome = simulate(np.zeros(7, np.int64), model, queue_limit=0)
        assert (outcome.refills.started / MS).tolist() == [0, 140, 280]
        assert (outcome.got_key / MS).tolist() == [70, 140, 210, 280, 350, 420, 430 + 588]

    def test_in_parallel_spares_the_peak_of_fig_4_3(self) -> None:
        at_once = pooled(20, keys_at_start=2300, pool_keys=3000, batch=175)
        parallel_refill = replace(at_once, refill=Refill.PARALLEL, low_water=175)
        peaks = [
            latencies_ms(simulate(make_arrivals(), model, queue_limit=0)).max() for model in (at_once, parallel_refill)
        ]
        assert peaks[0] > 10 * peaks[1]

    @pytest.mark.parametrize("change", [{"batch": 0}, {"threads": 0}, {"generators": 0}])
    def test_without_end_or_without_threads_is_refused(self, change: dict[str, int]) -> None:
        with pytest.raises(ValueError, match="at least 1"):
            pooled(20, **change)


class TestEveryRun:
    """Invariants for all parameters: checked on random ones, recounted from the outcome alone."""

    SEEDS = range(40)

    @staticmethod
    def drawn(seed: int) -> tuple[Outcome, ServiceModel, int]:
        """The outcome of random arrivals (many at one moment) at a random service, and its queue limit."""
        draw = np.random.default_rng(seed)
        gaps_ms = draw.choice([0, 0, 1, 5, 20, 100, 700], 300)
        model = ServiceModel(
            sign_ms=int(draw.integers(1, 60)),
            key_generation_ms=int(draw.integers(100, 700)),
            unwrap_ms=int(draw.integers(0, 80)),
            keys=KeySource.GENERATED if seed % 8 == 0 else KeySource.POOL,
            keys_at_start=int(draw.integers(0, 100)),
            store_keys=int(draw.integers(0, 50)),
            pool_keys=int(draw.integers(0, 250)),
            batch=int(draw.integers(1, 40)),
            low_water=int(draw.integers(0, 60)),
            refill=list(Refill)[seed % 2],
            threads=int(draw.integers(1, 6)),
            generators=1 + seed % 3,
        )
        limit = int(draw.choice([0, 1, 5, 20]))
        return simulate(np.cumsum(gaps_ms) * MS, model, queue_limit=limit), model, limit

    @pytest.mark.parametrize("seed", SEEDS)
    def test_each_request_is_dropped_or_goes_its_way_in_order(self, seed: int) -> None:
        outcome, model, _ = self.drawn(seed)
        done = ~outcome.dropped
        assert (outcome.received[done] <= outcome.started[done]).all()
        assert (outcome.started[done] <= outcome.got_key[done]).all()
        assert (outcome.finished[done] - outcome.got_key[done] == model.sign_ms * MS).all()
        assert (np.diff(outcome.started[done]) >= 0).all()
        for column, nothing in (
            (outcome.started, NEVER_NS),
            (outcome.got_key, NEVER_NS),
            (outcome.finished, NEVER_NS),
            (outcome.key_source, KeyOrigin.NONE),
        ):
            assert (column[outcome.dropped] == nothing).all()
            assert (column[done] != nothing).all()

    @pytest.mark.parametrize("seed", SEEDS)
    def test_each_thread_has_one_request_and_none_idles_while_one_waits(self, seed: int) -> None:
        outcome, model, _ = self.drawn(seed)
        done = np.flatnonzero(~outcome.dropped)
        received, started, finished = outcome.received[done], outcome.started[done], outcome.finished[done]
        for place in range(len(done)):
            before = finished[:place]
            assert np.count_nonzero(before > started[place]) < model.threads
            if started[place] > received[place]:
                assert started[place] in before
                assert np.count_nonzero(before >= started[place]) >= model.threads

    @pytest.mark.parametrize("seed", SEEDS)
    def test_a_request_is_dropped_exactly_when_the_queue_is_full(self, seed: int) -> None:
        outcome, _, limit = self.drawn(seed)
        for number, received in enumerate(outcome.received):
            waiting = np.count_nonzero(outcome.started[:number] > received)
            assert outcome.dropped[number] == (limit > 0 and waiting >= limit)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_no_key_is_used_before_it_is_there_nor_twice(self, seed: int) -> None:
        outcome, model, _ = self.drawn(seed)
        done = ~outcome.dropped
        used = {origin: outcome.key_source[done] == origin for origin in KeyOrigin}
        processed = np.count_nonzero(done)
        in_token = (model.keys_at_start, model.store_keys) if model.keys is KeySource.POOL else (0, 0)
        assert used[KeyOrigin.TOKEN_RAM].sum() == min(processed, in_token[0])
        assert used[KeyOrigin.TOKEN_STORE].sum() == min(processed - used[KeyOrigin.TOKEN_RAM].sum(), in_token[1])
        loaded_at = ready_ns(outcome, model)
        taken_at = outcome.got_key[done][used[KeyOrigin.POOL]]
        assert len(taken_at) <= len(loaded_at)
        assert (taken_at >= loaded_at[: len(taken_at)]).all()
        waited = taken_at > outcome.started[done][used[KeyOrigin.POOL]]
        assert (taken_at[waited] == loaded_at[: len(taken_at)][waited]).all()
        generated = used[KeyOrigin.GENERATED]
        asked, got = outcome.started[done][generated], outcome.got_key[done][generated]
        began = got - model.key_generation_ms * MS
        for place in range(len(began)):
            busy_until = np.sort(got[:place])[-model.generators :]
            free = busy_until[0] if len(busy_until) == model.generators else 0
            assert began[place] == max(asked[place], free)
        if generated.any() and model.keys is KeySource.POOL:
            assert outcome.refills.count.sum() == model.pool_keys == len(taken_at)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_one_loader_begins_a_batch_as_soon_as_too_few_keys_are_left(self, seed: int) -> None:
        outcome, model, _ = self.drawn(seed)
        if model.keys is KeySource.GENERATED:
            assert len(outcome.refills.count) == 0
            return
        processed = np.flatnonzero(~outcome.dropped)
        taken_at = outcome.got_key[processed]
        least = max(1, model.low_water) if model.refill is Refill.PARALLEL else 1
        made, free_at, outside = model.keys_at_start + model.store_keys, 0, model.pool_keys
        for count, started, finished in zip(*vars(outcome.refills).values(), strict=True):
            too_few_after = made - least + 1
            due = taken_at[too_few_after - 1] if too_few_after > 0 else 0
            assert started == max(due, free_at)
            assert count == min(model.batch, outside)
            assert finished == started + count * model.unwrap_ms * MS
            made, free_at, outside = made + count, finished, outside - count
        keys_taken = min(len(processed), made)
        assert outside == 0 or made - keys_taken >= least or free_at > taken_at[-1]

    def test_the_drawn_runs_reach_every_case(self) -> None:
        runs = [self.drawn(seed) for seed in self.SEEDS]
        assert {int(origin) for outcome, *_ in runs for origin in outcome.key_source} == set(KeyOrigin)
        parallel = [outcome for outcome, model, _ in runs if model.refill is Refill.PARALLEL]
        assert any(
            later == earlier
            for outcome in parallel
            for earlier, later in pairwise(outcome.refills.finished - outcome.refills.started)
        )
        assert any(
            (outcome.got_key > outcome.started)[outcome.key_source == KeyOrigin.POOL].any() for outcome in parallel
        )


@pytest.mark.parametrize("module", [simulator, simulator, service_model])
def test_simulator_contains_no_figure_of_the_source(module: ModuleType) -> None:
    """Its only numbers are nothing, one, the codes of `KeyOrigin`, and ns in a ms."""
    tree = ast.parse(inspect.getsource(module))
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    assert {value for value in constants if isinstance(value, int | float)} <= {*map(int, KeyOrigin), 1e6}


def ready_ns(outcome: Outcome, model: ServiceModel) -> NDArray[np.int64]:
    """When each key that was loaded could be used, by the refills."""
    refills = outcome.refills
    times = [
        np.full(count, finished)
        if model.refill is Refill.WHEN_EMPTY
        else started + np.arange(1, count + 1) * int(model.unwrap_ms * MS)
        for count, started, finished in zip(refills.count, refills.started, refills.finished, strict=True)
    ]
    return np.concatenate([np.zeros(0, np.int64), *times])


def test_3000_requests_take_a_tenth_of_a_second_at_most() -> None:
    """Of the processor's time, whatever else it has to do: ten runs, as some clocks tick every 16 ms."""
    model = pooled(20, keys_at_start=2000, pool_keys=3000, batch=175, low_water=500, refill=Refill.PARALLEL, threads=4)
    arrivals = make_arrivals()
    began = time.process_time()
    for _ in range(10):
        simulate(arrivals, model, queue_limit=50)
    assert (time.process_time() - began) / 10 < 0.1


def test_times_with_a_distribution_follow_from_the_seed_and_not_from_the_parts() -> None:
    """Two thirds take half a mean, one third takes two: the mean stays, and the queue grows where none was."""
    duration = Duration(
        ms=20,
        reference="none",
        distribution=[
            {"part": 0, "ms": 10},
            {"part": 0.66, "ms": 10},
            {"part": 0.67, "ms": 40},
            {"part": 1, "ms": 40},
        ],
    )
    model = ServiceModel(20, 588, 70, KeySource.POOL, keys_at_start=10_000, sign_factors=duration.factors, seed=7)
    arrivals = np.arange(3000, dtype=np.int64) * 21_000_000
    whole = simulate(arrivals, model, queue_limit=0)
    times = whole.finished - whole.got_key
    assert times.mean() == pytest.approx(20e6, rel=0.05) and times.std() > 5e6
    parts = Simulation(model, queue_limit=0)
    divided = np.concatenate([parts.follow(part).finished for part in np.split(arrivals, [1, 700, 2999])])
    assert divided.tolist() == whole.finished.tolist()
    assert simulate(arrivals, replace(model, seed=8), queue_limit=0).finished.tolist() != whole.finished.tolist()
    same = simulate(arrivals, replace(model, sign_factors=None), queue_limit=0)
    assert (same.started == same.received).all() and (whole.started > whole.received).any()
