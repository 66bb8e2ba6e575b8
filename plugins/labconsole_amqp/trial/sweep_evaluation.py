"""The figures of a rate sweep, from stored samples: which steps kept the limit, and the highest of their rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from labconsole.clock_comparison import between_hosts_ns, jump_doubt
from labconsole.model.trial import Curve, Event, Metric, Verdict
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.roles.schedule import OPEN_LOOP_WARM_UP_S
from labconsole_amqp.series import SWEEP_DONE, SWEEP_STEP, Phase
from labconsole_amqp.trial.joining import JoinedSamples
from labconsole_amqp.trial.metrics import metric
from labconsole_amqp.trial.rate_search import HIGHEST_RATE


class Step(NamedTuple):
    """A step of a sweep: the rate of each sender, messages per second; p99 in ms, None where not all came."""

    begin_ns: int
    rate: float
    due: int
    good: int
    p99_ms: float | None

    def kept(self, limit_ms: float) -> bool:
        """Whether all messages came, and 99 % of them within the limit."""
        return self.p99_ms is not None and self.p99_ms <= limit_ms

    def near(self, limit_ms: float, uncertain_ms: float) -> bool:
        """Whether the clocks leave open on which side of the limit p99 is."""
        return self.p99_ms is not None and abs(self.p99_ms - limit_ms) < uncertain_ms


def sweep_steps(joined: JoinedSamples, events: Sequence[Event]) -> list[Step]:
    """The steps in their order, each judged by the messages that were due in it after its warm-up."""
    begun = [event for event in events if event.name == SWEEP_STEP]
    intended = joined.sent["intended_ns"]
    counted = joined.sent["phase"] == Phase.OPEN_LOOP
    rows = joined.good & joined.matched
    of_sent = joined.of_received[rows]
    latencies = joined.received["received_ns"][rows] - intended[of_sent]
    steps = []
    for event in begun:
        begin_ns, rate, seconds = event.data["begin_ns"], event.data["rate"], event.data["seconds"]
        end_ns = begin_ns + int((OPEN_LOOP_WARM_UP_S + seconds) * 1e9)
        due = int(np.count_nonzero(counted & (intended >= begin_ns) & (intended < end_ns)))
        own = latencies[counted[of_sent] & (intended[of_sent] >= begin_ns) & (intended[of_sent] < end_ns)]
        whole = due > 0 and len(own) == due
        p99_ms = float(np.quantile(own, 0.99, method="inverted_cdf")) / 1e6 if whole else None
        steps.append(Step(begin_ns, rate, due, len(own), p99_ms))
    return steps


def highest(steps: Sequence[Step], limit_ms: float) -> Step | None:
    """The last step at the highest rate that kept the limit more often than not; None: there is none."""
    for rate in sorted({step.rate for step in steps}, reverse=True):
        own = [step for step in steps if step.rate == rate]
        kept = [step for step in own if step.kept(limit_ms)]
        if 2 * len(kept) > len(own):
            return kept[-1]
    return None


def sweep_figures(
    parameters: AmqpParameters, joined: JoinedSamples, events: Sequence[Event], busy: str
) -> tuple[tuple[Metric, ...], tuple[Verdict, ...]]:
    """Metrics and verdicts of a sweep; `busy`: why the computer was too busy for them, or empty."""
    steps = sweep_steps(joined, events)
    uncertain_ms = between_hosts_ns(events) / 1e6
    found = highest(steps, parameters.p99_limit - uncertain_ms)
    done = any(event.name == SWEEP_DONE for event in events)
    busy = "; ".join(filter(None, (busy, jump_doubt(events), "" if done else "the search did not come to its end")))
    return tuple(_metrics(parameters, steps, found, busy, uncertain_ms)), (
        _verdict(parameters, steps, found, done, uncertain_ms),
    )


def sweep_curves(
    parameters: AmqpParameters, joined: JoinedSamples, events: Sequence[Event], zero_ns: int
) -> Iterator[Curve]:
    """The offered rate and p99 of each step, at its middle."""
    steps = sweep_steps(joined, events)
    half_s = (OPEN_LOOP_WARM_UP_S + parameters.step) / 2
    times = np.array([(step.begin_ns - zero_ns) / 1e9 + half_s for step in steps])
    rates = np.array([step.rate * parameters.senders for step in steps])
    yield Curve("Offered", "Throughput", "msg/s", times, rates)
    whole = np.array([step.p99_ms is not None for step in steps], np.bool_)
    p99 = np.array([step.p99_ms for step in steps if step.p99_ms is not None])
    if len(p99):
        yield Curve("p99 of each step", "Latency", "ms", times[whole], p99)
        yield Curve("Limit", "Latency", "ms", times, np.full(len(times), parameters.p99_limit))


def _metrics(
    parameters: AmqpParameters, steps: Sequence[Step], found: Step | None, busy: str, uncertain_ms: float
) -> Iterator[Metric]:
    if found is not None and found.p99_ms is not None:
        yield metric("highest_rate", found.rate * parameters.senders, found.due, busy)
        yield metric("p99_at_highest_rate", found.p99_ms, found.due, "", uncertain_ms)
    yield metric("sweep_steps", len(steps), len(steps))


def _verdict(
    parameters: AmqpParameters, steps: Sequence[Step], found: Step | None, done: bool, uncertain_ms: float
) -> Verdict:
    """The verdict of a sweep; a rate only counts whose p99 is below the limit by more than the clocks are uncertain."""
    name, limit = "a rate keeps the limit", f"{parameters.p99_limit:g} ms"
    if not done:
        return Verdict(name, "unknown", f"The search did not come to its end: {len(steps)} steps were made.")
    rate = found.rate if found is not None else 0.0
    near = [one.rate for one in steps if one.rate > rate and one.near(parameters.p99_limit, uncertain_ms)]
    open_rates = (
        f" At {min(near) * parameters.senders:,.0f} messages a second, the clocks of the hosts "
        f"(± {uncertain_ms:.3g} ms) leave open whether p99 is within the limit."
        if near
        else ""
    )
    if found is None and near:
        return Verdict(name, "unknown", f"p99 was not clearly below {limit} in any of {len(steps)} steps.{open_rates}")
    if found is None:
        return Verdict(name, "fail", f"p99 was above {limit}, or messages were missing, in each of {len(steps)} steps.")
    total = found.rate * parameters.senders
    end = ", the highest that a sweep tries" if found.rate >= HIGHEST_RATE else ""
    reason = f"Up to {total:,.0f} messages a second{end}, 99 % of them take at most {limit} ({found.p99_ms:.3g} ms)."
    evidence = {"rate": total, "p99_ms": found.p99_ms, "clock_uncertainty_ms": uncertain_ms}
    return Verdict(name, "pass", reason + open_rates, evidence)
