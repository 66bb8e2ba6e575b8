"""Metrics and verdicts of drills, from the messages that flowed and the events of operators and roles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from labconsole.model.trial import (
    Direction,
    Evaluation,
    Event,
    Metric,
    MetricKind,
    Origin,
    Samples,
    Verdict,
    VerdictKind,
)
from labconsole_amqp.drills.drill_parameters import RevocationParameters, Revoked, Rotated, RotationParameters
from labconsole_amqp.drills.drill_roles import DRILL_DONE, OLD_REFUSED, STEP, TURNED_AWAY, WITHDRAWN
from labconsole_amqp.series import IDENTITIES_USED, LINK_LOST, OUTCOMES
from labconsole_amqp.trial import evaluation
from labconsole_amqp.trial.joining import JoinedSamples, load_joined
from labconsole_amqp.trial.metrics import METRICS
from labconsole_amqp.wire.sign_encrypt import Outcome

_AT_ONCE_MS, _REFUSED_MS = 1000.0, 2000.0
"""Within which a role must be connected again, and what is withdrawn be refused."""

OLD_REFUSED_AFTER = MetricKind(
    "old_refused_after",
    "Old one refused after",
    "ms",
    Direction.LOWER,
    "From the moment at which the old certificate is revoked, or the old root distrusted, in the certificate database "
    "until it is refused: by the broker a connection with the sender's old certificate, tried every 20 ms; or by "
    "sender and receiver, the later of them, the broker that they are connected to.",
)
TIME_TO_CLOSE = MetricKind(
    "time_to_close",
    "Time to close",
    "ms",
    Direction.LOWER,
    "From the moment at which the CRL is in the certificate database until the sender notices that the broker has "
    "closed its connection.",
)
TIME_TO_REFUSE = MetricKind(
    "time_to_refuse",
    "Time to refuse messages",
    "ms",
    Direction.LOWER,
    "From the moment at which the CRL is in the certificate database until the receiver refuses the first message for "
    "it. Left out where none came any more.",
)
ACCEPTED_AFTER = MetricKind(
    "accepted_after_revocation",
    "Accepted after revocation",
    "msg",
    Direction.LOWER,
    "Messages that the receiver accepted after the CRL was in the certificate database: those of the time until broker "
    "and receiver have read it.",
)
ROTATION_METRICS = (OLD_REFUSED_AFTER, *METRICS)
REVOCATION_METRICS = (TIME_TO_CLOSE, TIME_TO_REFUSE, ACCEPTED_AFTER, *(kind for kind in METRICS if kind.name != "lost"))


def evaluate_rotation(parameters: RotationParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
    """What the rotation cost, and when the old one was refused; with the figures and verdicts of the messages."""
    messages = evaluation.evaluate(parameters.messaging(), samples, events)
    refused_ms = _after_withdrawal(events, _old_refused(parameters, events))
    own = [] if refused_ms is None else [_metric(OLD_REFUSED_AFTER, refused_ms)]
    moved_ms = next((one.value for one in messages.metrics if one.name == "reconnect_time"), None)
    over = _is_over(events)
    verdicts = (
        _in_time("the roles moved within 1 s", "move to another connection", moved_ms, _AT_ONCE_MS, over),
        _in_time("the old one is refused within 2 s", "refusal", refused_ms, _REFUSED_MS, over),
    )
    return Evaluation((*own, *messages.metrics), (*messages.verdicts, *verdicts))


def evaluate_revocation(parameters: RevocationParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
    """When broker and receiver acted on the CRL, and which messages were accepted until then."""
    messages = evaluation.evaluate(parameters.messaging(), samples, events)
    own = list(_revocation_metrics(parameters, load_joined(parameters.messaging(), samples), events))
    figures = {one.name: one.value for one in own}
    preflight = (one for one in messages.verdicts if one.kind is VerdictKind.PREFLIGHT)
    kept = (one for one in messages.metrics if one.name != "lost")
    return Evaluation((*own, *kept), (*preflight, *_revocation_verdicts(parameters, figures, events)))


def _withdrawn_ns(events: Sequence[Event]) -> int | None:
    return next((one.t_ns for one in events if one.name == STEP and one.data["step"] == WITHDRAWN), None)


def _is_over(events: Sequence[Event]) -> bool:
    """Whether the drill was not cut short."""
    return any(one.name == DRILL_DONE for one in events)


def _after_withdrawal(events: Sequence[Event], at_ns: int | None) -> float | None:
    """Milliseconds from the withdrawal until `at_ns`."""
    began_ns = _withdrawn_ns(events)
    return None if began_ns is None or at_ns is None else (at_ns - began_ns) / 1e6


def _old_refused(parameters: RotationParameters, events: Sequence[Event]) -> int | None:
    """When what was before was refused."""
    if parameters.rotate is not Rotated.SERVER:
        return _first(events, OLD_REFUSED)
    refusing = {one.source: one.t_ns for one in events if one.name == IDENTITIES_USED and one.data["refused"]}
    return max(refusing.values()) if len(refusing) == 2 else None  # sender and receiver


def _first(events: Sequence[Event], name: str) -> int | None:
    return next((one.t_ns for one in events if one.name == name), None)


def _revocation_metrics(
    parameters: RevocationParameters, joined: JoinedSamples, events: Sequence[Event]
) -> Iterator[Metric]:
    withdrawn_ns = _withdrawn_ns(events)
    if withdrawn_ns is None:
        return
    lost = (one.t_ns for one in events if one.name == LINK_LOST and one.source.startswith("sender"))
    closed_ns = next((t_ns for t_ns in lost if t_ns > withdrawn_ns), None)
    if parameters.of_connection and closed_ns is not None:
        yield _metric(TIME_TO_CLOSE, (closed_ns - withdrawn_ns) / 1e6)
    times, outcomes = joined.received["received_ns"], joined.received["outcome"]
    later = times > withdrawn_ns
    refused = times[later & (outcomes == OUTCOMES.index(Outcome.SIGNER_REFUSED))]
    if len(refused):
        yield _metric(TIME_TO_REFUSE, (int(refused[0]) - withdrawn_ns) / 1e6)
    yield _metric(ACCEPTED_AFTER, int(np.count_nonzero(later & (outcomes == 0))), int(np.count_nonzero(later)))


def _revocation_verdicts(
    parameters: RevocationParameters, figures: dict[str, float], events: Sequence[Event]
) -> Iterator[Verdict]:
    over = _is_over(events)
    if parameters.of_connection:
        closed_ms, what = figures.get(TIME_TO_CLOSE.name), "end of the sender's connection"
        yield _in_time("the connection is closed within 2 s", what, closed_ms, _REFUSED_MS, over)
    if parameters.of_connection and over:
        yield Verdict("the revoked identity cannot connect again", *_turned_away(events))
    if parameters.revoke is Revoked.MESSAGES:
        refused_ms = figures.get(TIME_TO_REFUSE.name)
        yield _in_time("messages are refused within 2 s", "refused message", refused_ms, _REFUSED_MS, over)


def _turned_away(events: Sequence[Event]) -> tuple[str, str]:
    """Result and reason of the verdict on a revoked sender that comes back."""
    found = {one.name: one.message for one in events if one.name in (OLD_REFUSED, TURNED_AWAY)}
    if OLD_REFUSED not in found:
        return "fail", "The broker accepted a new connection with the revoked certificate."
    if TURNED_AWAY not in found:
        return "fail", "The sender could connect again, or kept its connection."
    return "pass", found[TURNED_AWAY]


def _in_time(name: str, what: str, took_ms: float | None, limit_ms: float, over: bool) -> Verdict:
    """The verdict on a time; `over`: whether the drill came to its last step."""
    if not over:
        return Verdict(name, "unknown", "The run ended before the last step of the drill.")
    if took_ms is None:
        return Verdict(name, "fail", f"There was no {what}.")
    result = "pass" if took_ms <= limit_ms else "fail"
    return Verdict(name, result, f"It took {took_ms:,.0f} ms.", {"ms": took_ms})


def _metric(kind: MetricKind, value: float, count: int = 1) -> Metric:
    return Metric(kind.name, float(value), kind.unit, kind.direction, count, {}, Origin.MEASURED)
