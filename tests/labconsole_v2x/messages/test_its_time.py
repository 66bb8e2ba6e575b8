"""ITS time: its epoch and leap seconds, and times across both wraps."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from labconsole_v2x.messages import its_time
from labconsole_v2x.messages.its_time import (
    GENERATION_DELTA_TIME_MODULUS_MS,
    GN_TIMESTAMP_MODULUS_MS,
    full_time,
    generation_delta_time,
    gn_timestamp,
)


def test_its_time_is_tai_since_2004() -> None:
    # The example of TS 102 894-2 (TimestampIts): 2007-01-01T00:00:00 UTC is 94,694,401,000 ms, after one leap second.
    # Four more leap seconds were added until 2017.
    unix_ns = int(datetime(2007, 1, 1, tzinfo=UTC).timestamp()) * 10**9
    assert its_time.its_us(unix_ns) == 94_694_401_000_000 + 4_000_000


def test_unix_time_survives_the_way_to_its_time_and_back() -> None:
    unix_ns = 1_763_950_000_123_456_000
    assert its_time.unix_ns(its_time.its_us(unix_ns)) == unix_ns


@pytest.mark.parametrize(
    ("shorten", "modulus_ms"),
    [(gn_timestamp, GN_TIMESTAMP_MODULUS_MS), (generation_delta_time, GENERATION_DELTA_TIME_MODULUS_MS)],
)
def test_shortened_times_start_again_and_are_found_across_the_wrap(shorten: object, modulus_ms: int) -> None:
    assert callable(shorten)
    wrap_us = modulus_ms * 1000 * 163
    assert shorten(wrap_us - 1) == modulus_ms - 1
    assert shorten(wrap_us) == 0
    assert shorten(wrap_us + 1999) == 1
    for sent_us in (wrap_us - 30_000, wrap_us - 1000, wrap_us, wrap_us + 20_000):
        for near_us in (wrap_us - 20_500, wrap_us - 1, wrap_us, wrap_us + 15_001):
            assert full_time(shorten(sent_us), modulus_ms, near_us) == sent_us


def test_full_time_is_the_nearest_of_all_candidates() -> None:
    modulus_ms, near_us = 100, 5_000_250
    for delta in range(modulus_ms):
        candidates = [(delta + modulus_ms * turn) * 1000 for turn in range(40, 60)]
        assert full_time(delta, modulus_ms, near_us) == min(candidates, key=lambda time: abs(time - near_us))
    assert full_time(50, modulus_ms, 5_000_000) == 5_050_000  # the later of two that are as near
