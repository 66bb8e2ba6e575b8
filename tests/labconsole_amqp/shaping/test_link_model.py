"""The model of a shaped link has its rate, delay, window and loss, by a virtual clock."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from labconsole_amqp.shaping.fitting import Setting, find_setting, full_speed
from labconsole_amqp.shaping.link_model import HEADER_OCTETS, SEGMENT_OCTETS, Flow, LinkSettings, OneWayLink

MS = 1_000_000
PACKET = SEGMENT_OCTETS + HEADER_OCTETS
LINK = LinkSettings(2e6, 2e6)
PAYLOAD_SHARE = SEGMENT_OCTETS / PACKET
"""The share of a full link's octets that is payload."""


def flow(settings: LinkSettings, open_ns: int = 0) -> tuple[Flow, OneWayLink, OneWayLink]:
    """A connection's direction to the broker, with both directions of the link."""
    random = Random(1)
    up, down = (OneWayLink(rate, settings, random) for rate in (settings.rate_up, settings.rate_down))
    return Flow(up, down, settings, open_ns), up, down


def drained(one: Flow) -> list[tuple[int, bytes]]:
    """What comes out, with its time, read at once."""
    out = []
    while (due := one.due_ns()) is not None:
        octets = one.arrived(due)
        one.delivered(len(octets), due)
        out.append((due, octets))
    return out


def test_octets_come_out_whole_in_order_and_at_the_rate() -> None:
    one, up, _ = flow(LINK)
    sent = Random(2).randbytes(40 * SEGMENT_OCTETS)
    one.offer(sent, 0)
    out = drained(one)
    assert b"".join(octets for _, octets in out) == sent
    times = [time for time, _ in out]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(40 * PACKET * 8 / 2e6 * 1e9, abs=MS)  # a millisecond may be made up for
    assert up.octets == 40 * PACKET


def test_a_lone_segment_takes_its_own_time_and_the_delay() -> None:
    settings = LinkSettings(2e6, 2e6, delay_ns=25 * MS)
    one, *_ = flow(settings)
    one.offer(b"x", 1000 * MS)
    ((time, _),) = drained(one)
    assert time - 1025 * MS == pytest.approx((1 + HEADER_OCTETS) * 8 / 2e6 * 1e9)
    assert settings.rtt_ns == 50 * MS


def test_nothing_leaves_before_the_handshake_is_over() -> None:
    one, *_ = flow(LINK, open_ns=50 * MS)
    one.offer(b"x", 0)
    ((time, _),) = drained(one)
    assert time >= 50 * MS


def test_no_more_than_the_window_is_on_its_way() -> None:
    settings = LinkSettings(1e9, 1e9, delay_ns=10 * MS, window=4 * SEGMENT_OCTETS)
    one, *_ = flow(settings)
    assert one.room(0) == 4 * SEGMENT_OCTETS
    one.offer(bytes(4 * SEGMENT_OCTETS), 0)
    assert one.room(10 * MS) == 0 and one.opens_ns() is None
    at = one.due_ns()
    assert at is not None
    octets = one.arrived(at)
    one.delivered(100, at)  # a segment is acknowledged once its reader has all of it
    assert one.opens_ns() is None and one.arrived(at) == octets[100:]
    one.delivered(len(octets) - 100, at)
    opens = one.opens_ns()
    assert opens is not None and 0 <= opens - at - 10 * MS < MS
    assert one.room(opens - 1) == 0 and one.room(opens) == len(octets)
    drained(one)
    assert one.room(at + 100 * MS) == 4 * SEGMENT_OCTETS


@pytest.mark.parametrize(("delay_ms", "window"), [(50, 65_536), (150, 32_768), (10, 8 * SEGMENT_OCTETS)])
def test_a_connection_is_as_fast_as_link_or_window(delay_ms: int, window: int) -> None:
    settings = LinkSettings(2e6, 2e6, delay_ns=delay_ms * MS, window=window)
    carried = full_speed(settings, 10_000) * 10_000 * 8
    by_window = window * 8 / (2 * delay_ms / 1e3 + PACKET * 8 / 2e6)
    assert carried == pytest.approx(min(2e6 * PAYLOAD_SHARE, by_window), rel=0.08)


def test_rate_is_shared_by_all_connections() -> None:
    random = Random(1)
    up, down = (OneWayLink(2e6, LINK, random) for _ in range(2))
    both = [Flow(up, down, LINK, 0) for _ in range(2)]
    for _ in range(20):
        for one in both:
            one.offer(bytes(SEGMENT_OCTETS), 0)
    ends = [drained(one)[-1][0] for one in both]
    assert max(ends) == pytest.approx(40 * PACKET * 8 / 2e6 * 1e9, abs=MS)
    assert min(ends) > 0.9 * max(ends)


def test_acknowledgements_take_time_of_the_other_direction() -> None:
    one, _, down = flow(LINK)
    one.offer(bytes(20 * SEGMENT_OCTETS), 0)
    drained(one)
    assert down.octets == 10 * HEADER_OCTETS


def test_lost_segments_hold_up_those_behind_and_take_the_link_again() -> None:
    clean, up_clean, _ = flow(LinkSettings(2e6, 2e6, delay_ns=50 * MS))
    lossy, up_lossy, _ = flow(LinkSettings(2e6, 2e6, delay_ns=50 * MS, loss=0.1))
    for one in (clean, lossy):
        one.offer(bytes(40 * SEGMENT_OCTETS), 0)
    ends, times = drained(clean), [time for time, _ in drained(lossy)]
    assert times == sorted(times)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert max(gaps) > 90 * MS and gaps.count(0) > 3  # a stall of a round trip, and what waited behind it
    assert times[-1] > ends[-1][0]
    assert up_lossy.octets > up_clean.octets


def test_acknowledgements_of_small_segments_are_full_ones_and_wait_in_the_queue() -> None:
    one, _, down = flow(LINK)
    for at in range(100):
        one.offer(bytes(50), at * 50 * MS)
        drained(one)
    assert down.octets == 50 * HEADER_OCTETS
    down.send(65_536, 6_000 * MS)  # the other direction is full
    one.offer(bytes(50), 6_000 * MS)
    drained(one)
    opens = [time for time, _ in one._unacknowledged]
    assert opens[-1] - 6_000 * MS > 65_536 * 8 / 2e6 * 1e9


def test_the_end_comes_out_behind_all_octets_and_after_the_delay() -> None:
    one, *_ = flow(LinkSettings(2e6, 2e6, delay_ns=200 * MS))
    one.end(1_000 * MS)
    assert one.due_ns() == 1_200 * MS and not one.is_over(1_199 * MS) and one.is_over(1_200 * MS)
    two, *_ = flow(LINK)
    two.offer(bytes(40 * SEGMENT_OCTETS), 0)
    two.end(0)
    drained_at = [time for time, _ in drained_until_end(two)]
    assert not two.is_over(drained_at[-1] - 1) and two.is_over(drained_at[-1])


def drained_until_end(one: Flow) -> list[tuple[int, bytes]]:
    out = []
    while (due := one.due_ns()) is not None and not one.is_over(due):
        octets = one.arrived(due)
        one.delivered(len(octets), due)
        out.append((due, octets))
    return out


def test_jitter_delays_and_keeps_the_order() -> None:
    one, *_ = flow(LinkSettings(1e9, 1e9, delay_ns=5 * MS, jitter_ns=20 * MS))
    for at in range(100):
        one.offer(b"x", at * MS)
    times = [time for time, _ in drained(one)]
    assert times == sorted(times)
    waits = [time - at * MS for at, time in enumerate(times)]
    assert min(waits) >= 5 * MS and max(waits) > 18 * MS and max(waits) < 26 * MS


def test_fast_links_are_computed_in_larger_pieces_at_the_same_rate() -> None:
    one, up, _ = flow(LinkSettings(1e9, 1e9, window=1 << 22))
    assert up.piece > 10 * SEGMENT_OCTETS
    one.offer(bytes(1 << 22), 0)
    out = drained(one)
    assert len(out) < 200
    assert out[-1][0] == pytest.approx((1 << 22) / PAYLOAD_SHARE * 8, rel=0.05)


@pytest.mark.parametrize(("rate", "size"), [(3.5, 42_756), (3.3, 43_126), (4.6, 43_536)])
def test_a_delay_gives_each_rate_of_the_source(rate: float, size: int) -> None:
    base = LinkSettings(2e6, 2e6, delay_ns=10 * MS)
    assert full_speed(base, size) == pytest.approx(5.6, abs=0.1)  # the link alone carries more
    for setting in (Setting.DELAY, Setting.LOSS):
        link = find_setting(setting, base, size, rate)
        assert link is not None and full_speed(link, size) == pytest.approx(rate, rel=0.01)


def test_a_rate_beyond_the_link_is_not_found() -> None:
    assert find_setting(Setting.DELAY, LINK, 42_756, 10) is None
    assert find_setting(Setting.WINDOW, LINK, 42_756, 0.01) is None
