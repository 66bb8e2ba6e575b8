"""Forecasts requests in each hour of the next week: a seasonal model, held against the same hour of the week before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from labconsole.errors import UserError
from labconsole_keypool.planning.arrival_log import ArrivalLog

WEEK = 7 * 24
"""Hours of a week."""
LEAST_WEEKS = 3
"""Two to learn from, and one to be held against."""

_ROUNDS = 5
_OUTLIER = 1.5
"""Times the usual distance from the model, from which on an hour counts less: a holiday is not the usual week."""
_FORGETTING = 0.9
"""Weight of a week, relative to the week after it."""
_LEVELS = 6
"""Weeks of which the trend is taken."""
_RECENT = 3
"""Weeks from which the level is estimated."""

Hours = NDArray[np.float64]


@dataclass(frozen=True)
class Errors:
    """Errors of a forecast: `mae` requests per hour, `mape` % of the requests, over the hours that had any."""

    mae: float
    mape: float

    @classmethod
    def of(cls, predicted: Hours, actual: Hours) -> Errors:
        distance = np.abs(predicted - actual)
        came = actual > 0
        mape = float((distance[came] / actual[came]).mean() * 100) if came.any() else float("nan")
        return cls(float(distance.mean()), mape)


@dataclass(frozen=True)
class Forecast:
    """The next week, and how well the last one of the log was forecast from those before it.

    Attributes:
        log: What it was learnt from.
        start: The first hour that is forecast, where the log ends.
        expected: Requests in each hour from `start` on, shape (168,): the model's, or the benchmark's where that was
            nearer to the held-out week.
        held_out: What came in the last week of the log, shape (168,).
        predicted: The model's forecast of that week from the weeks before alone.
        naive: The same hours of the week before, the benchmark.
        errors: Of the model in the held-out week.
        naive_errors: Of the benchmark.
    """

    log: ArrivalLog
    start: datetime
    expected: Hours
    held_out: Hours
    predicted: Hours
    naive: Hours
    errors: Errors
    naive_errors: Errors

    @property
    def held_out_start(self) -> datetime:
        """Begin of the held-out week."""
        return self.start - timedelta(hours=WEEK)

    @property
    def beats_naive(self) -> bool:
        """Whether its mean error in the held-out week was smaller than the benchmark's."""
        return self.errors.mae < self.naive_errors.mae

    @property
    def margin(self) -> float:
        """By what part the worst day of the held-out week had more requests than in the better forecast; 0 if none
        had."""
        better = self.predicted if self.beats_naive else self.naive
        came, said = (hours.reshape(7, 24).sum(axis=1) for hours in (self.held_out, better))
        return max(0.0, float((came / np.maximum(said, 1.0)).max()) - 1)

    @property
    def sentence(self) -> str:
        """Both errors, which is smaller, and that the smaller one sizes the pool."""
        model, naive = self.errors, self.naive_errors
        verdict = "better than" if self.beats_naive else "not better than"
        sizing = "the model" if self.beats_naive else "last week's same hour"
        return (
            f"Held-out week from {self.held_out_start:%Y-%m-%d %H:%M}: the model was off by {model.mae:,.1f} requests "
            f"an hour ({model.mape:.1f} %), {verdict} the same hour of the week before ({naive.mae:,.1f}; "
            f"{naive.mape:.1f} %). The pool is sized by {sizing}."
        )


def fit(log: ArrivalLog) -> Forecast:
    """Learn from all whole weeks of the log, counted back from its end.

    Raises:
        UserError: the log reaches over less than three weeks, or nothing came in them.
    """
    weeks = len(log.requests) // WEEK
    if weeks < LEAST_WEEKS:
        raise UserError(
            f"{log.source}: {len(log.requests) / 24:.1f} days of arrivals. A forecast needs {LEAST_WEEKS} weeks at "
            "least, two to learn from and one to be held against; import a longer log."
        )
    counts = log.requests[-weeks * WEEK :].reshape(weeks, WEEK)
    if not counts.any():
        raise UserError(f"{log.source}: no request came in {weeks} weeks, there is nothing to learn from.")
    begin = (log.end.weekday() * 24 + log.end.hour) % WEEK
    hours_of_week = (begin + np.arange(WEEK)) % WEEK
    before, held_out = counts[:-1], counts[-1]
    predicted, naive = _next_week(before, hours_of_week), before[-1]
    errors, naive_errors = Errors.of(predicted, held_out), Errors.of(naive, held_out)
    expected = _next_week(counts, hours_of_week) if errors.mae < naive_errors.mae else held_out
    return Forecast(log, log.end, expected, held_out, predicted, naive, errors, naive_errors)


def _next_week(counts: Hours, hours_of_week: NDArray[np.int64]) -> Hours:
    """Forecast of the week after `counts`, shape (weeks, 168): additive on log(1 + count), a level for each week and
    a profile over the hours, in which outlying hours count less; as much in sum as whole weeks."""
    logs = np.log1p(counts)
    ages = np.arange(len(logs))[::-1, None]
    weights = np.repeat(_FORGETTING**ages, WEEK, axis=1)
    levels = np.median(logs, axis=1)
    profile = np.median(logs - levels[:, None], axis=0)
    trust = weights
    scale = 0.0
    for _ in range(_ROUNDS):
        distances = np.abs(logs - levels[:, None] - profile)
        scale = 1.4826 * float(np.median(distances)) + 1e-9
        trust = weights * np.minimum(1.0, _OUTLIER * scale / np.maximum(distances, 1e-12))
        profile = (trust * (logs - levels[:, None])).sum(axis=0) / trust.sum(axis=0)
        levels = (trust * (logs - profile)).sum(axis=1) / trust.sum(axis=1)
    shrunk = _shrunk(profile, hours_of_week, scale**2 / trust.sum(axis=0).mean())
    said = np.maximum(0.0, np.expm1(levels[:, None] + shrunk)).sum(axis=1)
    # The median on a logarithm is below the mean; a pool is taken from by all requests: the weeks' sums decide.
    mean = float(np.median(counts.sum(axis=1) / np.maximum(said, 1.0)))
    return mean * np.maximum(0.0, np.expm1(_next_level(levels) + shrunk))


def _shrunk(profile: Hours, hours_of_week: NDArray[np.int64], variance: float) -> Hours:
    """The profile drawn towards day of week plus hour of day, the more, the less it exceeds the noise `variance`."""
    table = np.empty((7, 24))
    table.ravel()[hours_of_week] = profile
    additive = table.mean(axis=1, keepdims=True) + table.mean(axis=0, keepdims=True) - table.mean()
    own = float(np.mean((table - additive) ** 2))
    kept = max(0.0, own - variance) / own if own > 0 else 0.0
    return np.asarray((additive + kept * (table - additive)).ravel()[hours_of_week])


def _next_level(levels: Hours) -> float:
    """The next week's level: the median of the recent weeks', each carried on by the trend, as far as it is sure."""
    if len(levels) < 3:
        return float(levels[-1])
    recent = levels[-_LEVELS:]
    weeks = np.arange(len(recent))
    later, earlier = np.triu_indices(len(recent), 1)[::-1]
    slope = float(np.median((recent[later] - recent[earlier]) / (weeks[later] - weeks[earlier])))
    rest = recent - slope * weeks
    variance = float(np.median(np.abs(rest - np.median(rest))) * 1.4826) ** 2
    slope_variance = variance / float(((weeks - weeks.mean()) ** 2).sum())
    slope *= slope**2 / (slope**2 + slope_variance) if slope else 0.0
    carried = recent + slope * (len(recent) - weeks)
    return float(np.median(carried[-_RECENT:]))
