"""The AMQP trial: Tests 1-4 of `swim-wp16.txt` between a sender and a receiver, through a broker."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from typing import ClassVar, NamedTuple

from labconsole.analysis.parameter_texts import in_effect
from labconsole.model.trial import (
    ConsolePart,
    Curve,
    DerivedTable,
    Distribution,
    Evaluation,
    Event,
    LiveChannel,
    MetricKind,
    Parameters,
    Question,
    Ranking,
    RunContext,
    Samples,
    Series,
    Trial,
)
from labconsole.security.secrets import SecretRequest
from labconsole_amqp import counterpart
from labconsole_amqp.choices import BrokerChoice, Loop, MessageKeys, Mode, Settlement
from labconsole_amqp.envelopes.formats import EnvelopeFormat
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import (
    ACKNOWLEDGED,
    FAILED_CHANNEL,
    KEY_USES,
    LATENCY_CHANNEL,
    QUEUE_DEPTH,
    QUEUE_TIME_CHANNEL,
    RECEIVED,
    RECEIVED_CHANNEL,
    SENT,
    SENT_CHANNEL,
)
from labconsole_amqp.trial import curves, evaluation, latency
from labconsole_amqp.trial.disk_space import disk_needed
from labconsole_amqp.trial.identities import secret_requests
from labconsole_amqp.trial.message_table import message_tables
from labconsole_amqp.trial.messaging_run import MessagingRun, role_names
from labconsole_amqp.trial.metrics import METRICS
from labconsole_amqp.trial.soak_evaluation import soak_distributions
from labconsole_amqp.trial.soak_windows import SoakWindows
from labconsole_amqp.wire.envelope import Protection

_UNSIGNED = (
    f"The envelope {EnvelopeFormat.SEED_2025.value} signs the body alone: who it is for, its time and number are not "
    "signed, so that a message can be replayed, re-dated or sent on to another receiver"
)
_SOURCE_ENVELOPE = {
    Protection.SIGNED: f"{_UNSIGNED}. It is for comparison with the source: choose another envelope for real use.",
    Protection.SIGNED_ENCRYPTED: (
        f"{_UNSIGNED}; it encrypts by AES-CBC without a MAC, so that a receiver that shows why it refuses can be used "
        "to read messages. It is for comparison with the source: choose another envelope for real use."
    ),
}


class AmqpTrial(Trial[AmqpParameters]):
    """Sends messages through a broker, plain or with TLS, signed, encrypted, and measures the cost."""

    kind: ClassVar[str] = "amqp.messaging"
    title: ClassVar[str] = "AMQP 1.0 (SWIM)"
    description: ClassVar[str] = (
        "What do TLS, message signing and body encryption cost in throughput and latency, between two States' brokers?"
    )
    parameters: ClassVar[type[Parameters]] = AmqpParameters
    series: ClassVar[tuple[Series, ...]] = (SENT, ACKNOWLEDGED, RECEIVED, KEY_USES, QUEUE_DEPTH)
    metrics: ClassVar[tuple[MetricKind, ...]] = METRICS
    key_metrics: ClassVar[tuple[str, ...]] = ("throughput", "latency_mean", "latency_p99", "lost")
    finding_metrics: ClassVar[tuple[str, ...]] = ("throughput", "latency_mean")
    live: ClassVar[tuple[LiveChannel, ...]] = (
        SENT_CHANNEL,
        RECEIVED_CHANNEL,
        LATENCY_CHANNEL,
        QUEUE_TIME_CHANNEL,
        FAILED_CHANNEL,
    )
    merge_operation: ClassVar[str] = "amqp.merge"
    on_hosts: ClassVar[bool] = True
    definitions: ClassVar[int] = 4

    def secrets(self, parameters: AmqpParameters) -> tuple[SecretRequest, ...]:
        return tuple(secret_requests(parameters))

    def role_names(self, parameters: AmqpParameters) -> tuple[str, ...]:
        return tuple(chain.from_iterable(role_names(parameters)))

    def run(self, parameters: AmqpParameters, context: RunContext) -> None:
        run = MessagingRun(parameters, context)
        if run.begin():
            run.conduct()

    def evaluate(self, parameters: AmqpParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        return evaluation.evaluate(parameters, samples, events)

    def curves(self, parameters: AmqpParameters, samples: Samples, events: Sequence[Event]) -> tuple[Curve, ...]:
        return curves.curves(parameters, samples, events)

    def distributions(
        self, parameters: AmqpParameters, samples: Samples, events: Sequence[Event]
    ) -> tuple[Distribution, ...]:
        if parameters.loop is Loop.SOAK:
            windows = SoakWindows.read(parameters, samples, events)
            return () if windows is None else soak_distributions(windows)
        return latency.distributions(parameters, samples, events)

    def contrast(self, reference: AmqpParameters, other: AmqpParameters) -> str:
        difference = _difference(reference, other)
        return difference.label if difference is not None else ""

    def questions(self, reference: AmqpParameters, other: AmqpParameters) -> tuple[Question, ...]:
        return _questions(reference, other)

    def ranking(self, parameters: Sequence[AmqpParameters]) -> Ranking | None:
        first, *others = parameters
        free = _MAY_DIFFER | {"envelope", "fields_in"}
        if first.loop is not Loop.SWEEP or not all(_are_alike(first, other, free) for other in others):
            return None
        subject = f"With p99 under {first.p99_limit:g} ms"
        return Ranking("What does each protection carry at your load?", "highest_rate", subject)

    def derived(
        self, parameters: AmqpParameters, samples: Samples, events: Sequence[Event]
    ) -> tuple[DerivedTable, ...]:
        return message_tables(parameters, samples, events)

    def console_part(self, parameters: AmqpParameters) -> ConsolePart | None:
        return counterpart.console_part(parameters)

    def counterpart(self, parameters: AmqpParameters) -> AmqpParameters | None:
        return counterpart.counterpart(parameters)

    def disk_bytes(self, parameters: AmqpParameters) -> int:
        return disk_needed(parameters).during_run

    def warnings(self, parameters: AmqpParameters) -> tuple[str, ...]:
        warnings = []
        if parameters.loop is Loop.CLOSED:
            warnings.append(
                "Closed loop: each message waits in queues at sender, broker and receiver, as in the source, so that "
                "its time in queue is not the link's latency."
            )
        if parameters.settlement is Settlement.PRE_SETTLED:
            warnings.append("Pre-settled: no message is acknowledged, so one may be lost without a fault.")
        if parameters.protection is not Protection.NONE and not parameters.envelope.is_hardened:
            warnings.append(_SOURCE_ENVELOPE[parameters.protection])
        if parameters.mode is Mode.RECEIVER:
            measured = "Time in queue" if parameters.loop is Loop.CLOSED else "Latency"
            corrected = (
                "is corrected by the measured offset" if parameters.compare_clocks else "includes the difference"
            )
            warnings.append(
                f"{measured} is from the time stamp in the message (1 ms steps) by the wall clocks of both computers, "
                f"and {corrected} of the two clocks."
            )
        if parameters.username and not parameters.tls:
            warnings.append(
                "User name and password go to the broker unencrypted (SASL PLAIN over TCP), and can be read on the way."
            )
        if parameters.is_direct:
            warnings.append(
                "No broker: the sender is connected to the receiver, and no queue stores messages between them."
            )
        return tuple(warnings)

    def local_warnings(self, parameters: AmqpParameters) -> tuple[str, ...]:
        match parameters.broker:
            case BrokerChoice.EMBEDDED:
                return (
                    "Embedded broker: sender, receiver and broker share one computer, over its loopback interface.",
                )
            case BrokerChoice.NONE:
                return ("Sender and receiver share one computer, over its loopback interface.",)
            case _:
                return ()


_ADDED = {2: "TLS", 3: "signing", 4: "encryption"}
_LABELS = {
    (1, 2): "TLS against plain",
    (1, 3): "TLS and signing against plain",
    (1, 4): "TLS, signing and encryption against plain",
    (2, 3): "Signing against TLS",
    (2, 4): "Signing and encryption against TLS",
    (3, 4): "Encryption against signing",
}

_KEYS = {
    (MessageKeys.IDENTITY, MessageKeys.TOKEN): (
        "Signing key in a token against the identity's",
        "a signing key in a token",
    ),
    (MessageKeys.IDENTITY, MessageKeys.POOL): (
        "One signing key per message against the identity's",
        "one signing key per message, in a token,",
    ),
    (MessageKeys.TOKEN, MessageKeys.POOL): (
        "One signing key per message against one per trial",
        "one signing key per message",
    ),
}
"""By what signs: the name of the contrast, and what is added."""

_MAY_DIFFER = frozenset({"test", "count", "port", "trial_id"})


class _Difference(NamedTuple):
    """What one run does more to each message than another: the name of the contrast, and what is added."""

    label: str
    added: str
    may_differ: frozenset[str]


def _difference(reference: AmqpParameters, other: AmqpParameters) -> _Difference | None:
    """What `other` does more to each message than `reference`, where all else is equal; None: they are no fair pair.

    The number of messages may differ: slow tests have fewer, throughput is per second and latency per message.
    (In a closed loop latency grows until the queue or the credit window is full: a run of fewer messages may show less
    of it.) So may the port, since a broker has another one for TLS, and what has an effect in one of the tests only.
    Two envelopes of one test are a fair pair, too, and so are an identity's key, one in a token, and one per message.
    """
    found, signed = None, reference.protection is not Protection.NONE
    if _other_envelope(reference, other):
        label = f"Envelope {other.envelope.value} against {reference.envelope.value}"
        found = _Difference(label, f"the envelope {other.envelope.value}", _MAY_DIFFER | {"envelope", "fields_in"})
    elif reference.test != other.test:
        if label := _LABELS.get((reference.test, other.test), ""):
            *first, last = (_ADDED[test] for test in range(reference.test + 1, other.test + 1))
            found = _Difference(label, f"{', '.join(first)} and {last}" if first else last, _MAY_DIFFER)
    elif signed and (keys := _KEYS.get((reference.message_keys, other.message_keys))):
        found = _Difference(*keys, _MAY_DIFFER | {"message_keys", "sender_message_identity"})
    return found if found is not None and _are_alike(reference, other, found.may_differ) else None


def _are_alike(one: AmqpParameters, other: AmqpParameters, may_differ: Collection[str]) -> bool:
    """Whether all is equal that has an effect in both, but for parameters that may differ."""
    values, others = one.model_dump(mode="json"), other.model_dump(mode="json")
    return not any(
        values[name] != others[name] and all(in_effect(name, each, AmqpParameters) for each in (values, others))
        for name in values.keys() - may_differ
    )


def _other_envelope(reference: AmqpParameters, other: AmqpParameters) -> bool:
    """Whether the two are the same test with signatures, in other envelopes."""
    signed = reference.protection is not Protection.NONE
    return signed and reference.test == other.test and reference.envelope is not other.envelope


def _questions(reference: AmqpParameters, other: AmqpParameters) -> tuple[Question, ...]:
    """Questions on the cost of `other` over `reference`: in throughput, in latency at an equal rate."""
    difference = _difference(reference, other)
    if difference is None or (other.loop is Loop.SWEEP and _other_envelope(reference, other)):  # a ranking answers it
        return ()
    added = difference.added
    throughput = Question(
        f"What does {added} cost in throughput?",
        "throughput",
        added[0].upper() + added[1:],
        left_of="messages a second",
    )
    latency = Question(f"What does {added} cost in latency?", "latency_mean", f"With {added}")
    at_limit = Question(
        f"What does {added} cost at your load?",
        "highest_rate",
        added[0].upper() + added[1:],
        left_of=f"messages a second with p99 under {other.p99_limit:g} ms",
    )
    by_loop = {
        Loop.CLOSED: (throughput,),
        Loop.OPEN: (latency,),
        Loop.BOTH: (throughput, latency),
        Loop.SWEEP: (at_limit,),
        Loop.SOAK: (latency,),
    }
    return by_loop[other.loop]
