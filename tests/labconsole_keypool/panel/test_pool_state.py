"""The places of the keys, computed from counters that come from several processes in any order."""

from __future__ import annotations

from labconsole.engine.protocol import ChannelFrame, LiveFrame
from labconsole_keypool.panel.pool_state import Rates, idle_state, running_state
from labconsole_keypool.store.key_records import Counts


def frame(**counts: int) -> LiveFrame:
    return LiveFrame(10, 5, 0, 0, {name: ChannelFrame(count) for name, count in counts.items()}, {})


def test_keys_are_counted_between_their_stations() -> None:
    now = frame(
        received=100,
        dropped=7,
        taken=81,
        keys_generated=30,
        keys_stored=28,
        keys_claimed=60,
        keys_loaded=55,
        keys_used=40,
    )
    state = running_state(now, {"keys_stored": 1.5, "keys_loaded": 14.0, "keys_used": 20.0}, in_store_at_start=200)
    assert (state.wrapping, state.in_store, state.in_token, state.used) == (2, 168, 15, 40)
    assert (state.queue, state.dropped) == (12, 7)
    assert state.rates == Rates(1.5, 14.0, 20.0) and state.moves


def test_counters_that_come_late_make_nothing_negative() -> None:
    state = running_state(frame(keys_stored=3, keys_used=2, taken=4, keys_claimed=9), {}, in_store_at_start=1)
    assert (state.wrapping, state.in_store, state.in_token, state.queue) == (0, 0, 0, 0)
    assert not state.moves


def test_without_a_run_the_counts_are_those_of_the_store() -> None:
    state = idle_state(Counts(new=12, in_use=3, used=200, invalid=1))
    assert (state.in_store, state.in_token, state.used, state.lost, state.running) == (12, 3, 200, 1, False)
