"""The planner's formulas: the source's own numbers, closed forms, and derivations that end with the figure."""

from __future__ import annotations

import math

import numpy as np
import pytest

from labconsole_keypool.planning import formulas

SI, KG, WRAP, KP = 20.0, 588.0, 121.0, 70.0
IN_TOKEN = 12_033 + 20_000
PEAK_S = 7200.0


@pytest.mark.parametrize(
    ("rate", "duration_s", "queue"), [(40, 75.001, 1027.5), (50, 59.990, 1422), (100, 29.995, 2211)]
)
def test_the_queue_is_that_of_table_4_2(rate: float, duration_s: float, queue: float) -> None:
    assert formulas.queue_length(rate, 26.3, duration_s).value == pytest.approx(queue, rel=1e-3)


def test_the_latency_is_that_of_section_4_6_where_it_reckons_rightly() -> None:
    assert formulas.latency(0, 38, 1027.5).value == 39_045
    assert formulas.latency(0, 38, 1422).value == 54_036
    assert formulas.latency(0, 38, 2217).value == 84_246, "the source prints 84,018"


def test_base_rate_is_one_second_over_the_signing_time() -> None:
    assert formulas.base_rate(38).value == pytest.approx(26.3, rel=1e-3)
    assert formulas.base_rate(40, threads=2).value == 50


def test_without_keys_threads_do_not_generate_faster_than_the_device() -> None:
    assert formulas.rate_without_keys(SI, KG).value == pytest.approx(1 / 0.608)
    assert formulas.rate_without_keys(SI, KG, threads=4).value == pytest.approx(1 / 0.588)
    assert formulas.rate_without_keys(SI, KG, threads=4, at_a_time=4).value == pytest.approx(4 / 0.608)


def test_below_the_base_rate_no_queue_no_drop_and_one_service_time() -> None:
    assert formulas.queue_length(50, 50, 60).value == 0
    assert formulas.latency(0, SI, 0).value == SI
    assert formulas.time_to_first_drop(50, 50, 10).value == math.inf
    assert formulas.time_to_first_drop(90, 50, 0).value == math.inf
    assert formulas.time_to_empty(100, 14, 50, KP).value == math.inf


def test_keys_in_the_token_are_taken_no_faster_than_they_sign() -> None:
    assert formulas.time_to_empty(1000, 90, 50, KP).value == pytest.approx(1000 / (50 - 1000 / KP))
    assert formulas.time_to_empty(1000, 40, 50, KP).value == pytest.approx(1000 / (40 - 1000 / KP))


def test_devices_with_keys_enough_are_as_many_as_sign_the_peak() -> None:
    assert formulas.hsms_without_pool(60, 50, 10, IN_TOKEN, KG).value == 2


def test_queue_is_full_once_requests_beyond_the_base_rate_have_filled_it() -> None:
    assert formulas.time_to_first_drop(60, 50, 150).value == 15


def test_the_source_s_nine_devices_and_its_cost_ratio_are_derived_in_readable_lines() -> None:
    stored = formulas.hsms_without_pool(50, 50, PEAK_S, IN_TOKEN, KG)
    pooled = formulas.hsms_with_pool(50, 50)
    assert (stored.value, pooled.value) == (9, 1)
    assert stored.steps[-1] == "360,000 / 44,278 = 8.130, rounded up 9"
    ratio = formulas.cost_ratio(stored, pooled)
    assert (ratio.value, ratio.steps[-1]) == (9, "9 / 1 = 9")


def test_without_storage_29_devices_do_not_quite_sign_the_peak() -> None:
    unstored = formulas.hsms_without_storage(50, KG)
    assert unstored.value == 30
    assert unstored.steps[-1] == "50 / 1.701 = 29.40, rounded up 30 (29 carry 49.32 requests/s)"


def test_with_a_pool_more_devices_are_needed_once_loading_is_counted() -> None:
    """7,200 s unwrap 102,857 keys; with 32,033 in the token that is not half of what the peak takes."""
    assert formulas.hsms_with_loading(50, 50, PEAK_S, IN_TOKEN, KP).value == 3
    assert formulas.hsms_with_loading(50, 50, PEAK_S, IN_TOKEN, KP / 10).value == 1
    assert formulas.hsms_with_loading(200, 50, 1, IN_TOKEN, KP).value == 4, "keys enough: signing decides"


def test_pool_for_a_day_holds_the_keys_that_busy_hours_use_beyond_those_generated() -> None:
    day = np.zeros(24)
    day[9:12] = [1000, 4000, 2000]
    base, pooled_ms = 2.0, 1000.0
    made = [3600 * (1 - taken / 7200) for taken in (4000, 2000)]
    pool = formulas.pool_for_day(day, base, pooled_ms)
    assert pool.value == math.ceil(4000 - made[0])
    assert pool.steps[-1].startswith("10:00 to 11:00: 4,000 requests")
    assert formulas.pool_for_day(day / 100, base, pooled_ms).value == 0


def test_a_pool_covers_every_hour_to_the_key_and_one_less_does_not() -> None:
    random = np.random.default_rng(5)
    for _ in range(50):
        requests, made = random.integers(0, 50, 24).astype(float), random.integers(0, 40, 24).astype(float)
        needed = formulas.keys_needed(requests, made)
        for first in range(24):
            levels = needed[first] + np.cumsum((made - requests)[first:])
            assert levels.min(initial=0) >= -1e-9
            assert needed[first] == 0 or levels.min() == pytest.approx(0)


def test_day_that_uses_more_keys_than_are_generated_is_reported() -> None:
    pool = formulas.pool_for_day(formulas.business_day(50), 50, KG + WRAP)
    assert pool.steps[-1] == ("generation does not keep up: the day takes 1,665,000 keys, its idle time makes 74,894")
    assert pool.value == 1_665_000 - 74_894


@pytest.mark.parametrize(
    "derivation",
    [
        formulas.base_rate(38),
        formulas.rate_without_keys(SI, KG),
        formulas.queue_length(60, 50, 10),
        formulas.latency(0, SI, 100),
        formulas.time_to_first_drop(60, 50, 150),
        formulas.time_to_empty(1000, 50, 50, KP),
        formulas.pool_for_day(formulas.business_day(2), 50, KG + WRAP),
        formulas.hsms_with_pool(60, 50),
        formulas.hsms_with_loading(50, 50, PEAK_S, IN_TOKEN, KP),
        formulas.hsms_without_pool(50, 50, PEAK_S, IN_TOKEN, KG),
        formulas.hsms_without_storage(50, KG),
    ],
)
def test_the_last_line_of_a_derivation_holds_its_figure(derivation: formulas.Derivation) -> None:
    assert formulas.shown(derivation.value) in derivation.steps[-1]
    assert all(len(step) < 160 for step in derivation.steps)
