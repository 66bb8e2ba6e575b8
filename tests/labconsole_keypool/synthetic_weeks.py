"""Logs of arrivals whose truth is known: a business week with noise, trend and holidays."""

from __future__ import annotations

from datetime import datetime

import numpy as np

from labconsole_keypool.planning.arrival_log import ArrivalLog

_DAY = [2, 1, 1, 1, 1, 2, 5, 15, 40, 60, 70, 65, 50, 60, 65, 60, 50, 35, 20, 15, 12, 10, 6, 3]
_WEEKEND = [4, 3, 2, 1, 1, 1, 1, 2, 3, 6, 9, 11, 12, 12, 11, 10, 10, 11, 13, 14, 12, 9, 7, 5]
START = datetime(2026, 3, 4, 5)
"""In the middle of a week, and not at midnight."""


def synthetic_weeks(
    weeks: int,
    seed: int,
    *,
    noise: float = 0.15,
    trend: float = 0.0,
    holidays: int = 0,
    scale: float = 20.0,
    weekly: float = 0.0,
) -> ArrivalLog:
    """Poisson counts whose rate has a week's profile (weekends have another shape than working days), `trend` (part per
    week), noise of each hour and of each week (of the logarithm), and holidays with a quarter of the requests."""
    random = np.random.default_rng(seed)
    hours = weeks * 168
    profile = np.array([*_DAY * 5, *_WEEKEND * 2], np.float64) * np.repeat([1, 1.1, 1.05, 1, 0.9, 1, 0.8], 24)
    rate = scale * np.roll(np.tile(profile, weeks), -(START.weekday() * 24 + START.hour))
    rate *= np.exp(trend * np.arange(hours) / 168 + random.normal(0, noise, hours))
    rate *= np.repeat(np.exp(random.normal(0, weekly, weeks)), 168)
    for day in random.choice(weeks * 7, holidays, replace=False):
        rate[day * 24 : (day + 1) * 24] /= 4
    return ArrivalLog(START, random.poisson(rate).astype(np.float64), "Synthetic weeks")
