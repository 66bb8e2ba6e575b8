"""Link settings that give a message rate: delay, TCP window or loss, found in the model of the link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from random import Random

from labconsole_amqp.shaping.link_model import SEGMENT_OCTETS, Flow, LinkSettings, OneWayLink

_LEAST_OCTETS, _LEAST_MESSAGES = 2_000_000, 8
_WINDOWS = 4
"""What is measured: so many octets, messages and windows at least, after half of that has filled the link."""
_STEPS = 20
"""A share of a range is found to 2 to the power of minus this: the four digits that are shown, down to a thousandth of
the longest delay."""
_NEAR, _NEAR_WITH_LOSS = 1e-6, 1e-3
"""A rate is met where more is carried by such a part of it. With loss it is a mean of few simulations, and rises in
steps of about a thousandth."""
_SEEDS = 3
"""Simulations of which a rate with loss is the mean."""
_LONGEST_DELAY_NS = 1_000_000_000
_LARGEST_WINDOW = 1 << 24
_WAITING_SEGMENTS = 64
"""What waits in front of a link that is full. A larger window carries no more, and takes long to simulate."""
_MOST_LOSS = 0.5


class Setting(StrEnum):
    """The setting of a link that is searched for."""

    DELAY = "delay"
    WINDOW = "window"
    LOSS = "loss"


def full_speed(settings: LinkSettings, message: int) -> float:
    """Messages of so many octets a second that a connection carries to the broker at full speed, in the model."""
    seeds = range(_SEEDS if settings.loss or settings.jitter_ns else 1)
    return sum(_full_speed(settings, message, Random(seed)) for seed in seeds) / len(seeds)


def _full_speed(settings: LinkSettings, message: int, random: Random) -> float:
    up = OneWayLink(settings.rate_up, settings, random)
    flow = Flow(up, OneWayLink(settings.rate_down, settings, random), settings, 0)
    measured = max(_LEAST_OCTETS, _LEAST_MESSAGES * message, _WINDOWS * settings.window)
    now, begin, read = 0, 0, 0
    left = measured + measured // 2
    while True:
        while octets := flow.arrived(now):
            flow.delivered(len(octets), now)
            read += len(octets)
            if not begin and read >= measured // 2:
                begin, begin_octets = now, read
        room = min(left, flow.room(now))
        if room:
            flow.offer(bytes(room), now)
            left -= room
        due_ns, opens_ns = flow.due_ns(), flow.opens_ns() if left else None
        if due_ns is None and opens_ns is None:
            return (read - begin_octets) / message / ((now - begin) / 1e9)
        if due_ns is None or (opens_ns is not None and opens_ns < due_ns):
            due_ns = opens_ns
        assert due_ns is not None
        now = max(now, due_ns)


def find_setting(setting: Setting, settings: LinkSettings, message: int, rate: float) -> LinkSettings | None:
    """The link with the value of one setting at which it carries `rate` messages a second; None where none does."""
    largest_window = _largest_window(settings)

    def with_share(share: float) -> LinkSettings:
        """The setting at a share of its range, 0: at its best, 1: at its worst."""
        if setting is Setting.DELAY:
            return replace(settings, delay_ns=round(share**3 * _LONGEST_DELAY_NS))
        if setting is Setting.LOSS:
            return replace(settings, loss=share * _MOST_LOSS)
        return replace(settings, window=round(largest_window ** (1 - share) * SEGMENT_OCTETS**share))

    def excess(share: float) -> float:
        return full_speed(with_share(share), message) / rate - 1

    share = _last_with_excess(excess, _NEAR_WITH_LOSS if setting is Setting.LOSS else _NEAR)
    return None if share is None else with_share(share)


def _largest_window(settings: LinkSettings) -> int:
    """A window with which a connection fills the link by far."""
    fastest = max(settings.rate_up, settings.rate_down)
    on_their_way = fastest * (settings.rtt_ns + settings.jitter_ns) / 8e9
    return min(_LARGEST_WINDOW, round(4 * on_their_way) + _WAITING_SEGMENTS * SEGMENT_OCTETS)


def _last_with_excess(excess: Callable[[float], float], near: float) -> float | None:
    """The share up to which `excess`, which falls from 0 to 1, is not negative; None where its sign never changes."""
    from scipy.optimize import toms748  # takes 0.2 s to import

    tried: dict[float, float] = {}

    def met(share: float) -> float:
        """The excess, or 0 where it is near enough to it."""
        tried[share] = excess(share)
        return 0.0 if 0 <= tried[share] <= near else tried[share]

    if met(0.0) < 0 or met(1.0) >= 0:
        return None
    toms748(met, 0.0, 1.0, xtol=0.5**_STEPS)
    return max(share for share, value in tried.items() if value >= 0)
