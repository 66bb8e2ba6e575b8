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
"""Halvings of a range: enough for the four digits that are shown, down to a thousandth of the longest delay."""
_SEEDS = 3
"""Simulations of which a rate with loss is the mean."""
_LONGEST_DELAY_NS = 1_000_000_000
_LARGEST_WINDOW = 1 << 24
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
        events = [time for time in (flow.due_ns(), flow.opens_ns() if left else None) if time is not None]
        if not events or (not left and flow.due_ns() is None):
            return (read - begin_octets) / message / ((now - begin) / 1e9)
        now = max(now, min(events))


def find_setting(setting: Setting, settings: LinkSettings, message: int, rate: float) -> LinkSettings | None:
    """The link with the value of one setting at which it carries `rate` messages a second; None where none does."""

    def with_share(share: float) -> LinkSettings:
        """The setting at a share of its range, 0: at its best, 1: at its worst."""
        if setting is Setting.DELAY:
            return replace(settings, delay_ns=round(share**3 * _LONGEST_DELAY_NS))
        if setting is Setting.LOSS:
            return replace(settings, loss=share * _MOST_LOSS)
        window = _LARGEST_WINDOW ** (1 - share) * SEGMENT_OCTETS**share
        return replace(settings, window=round(window))

    def carries(share: float) -> bool:
        return full_speed(with_share(share), message) >= rate

    return with_share(_last_true(carries)) if carries(0.0) and not carries(1.0) else None


def _last_true(holds: Callable[[float], bool]) -> float:
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
