"""The AMQP trial: Tests 1-4 of `swim-wp16.txt` between a sender and a receiver, through a broker."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from labconsole.analysis.parameter_texts import in_effect
from labconsole.clock import now_ns
from labconsole.model.trial import (
    Curve,
    DerivedTable,
    Distribution,
    Evaluation,
    Event,
    LiveChannel,
    MetricKind,
    Parameters,
    Question,
    RoleHandle,
    RoleSpec,
    RunContext,
    Samples,
    Series,
    Trial,
)
from labconsole.security.secrets import SecretRequest
from labconsole_amqp.choices import BrokerChoice, Leftover, Loop, Mode, Settlement
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.roles.broker_role import MEASURE_COMMAND
from labconsole_amqp.roles.link_role import connect_command, open_loop_command
from labconsole_amqp.roles.receiver_role import COUNT_COMMAND, senders_done
from labconsole_amqp.roles.role_settings import RoleSettings
from labconsole_amqp.series import (
    ACKNOWLEDGED,
    FAILED_CHANNEL,
    LATENCY_CHANNEL,
    OPEN_LOOP,
    QUEUE_TIME_CHANNEL,
    RECEIVED,
    RECEIVED_CHANNEL,
    SENT,
    SENT_CHANNEL,
)
from labconsole_amqp.trial import curves, evaluation, latency
from labconsole_amqp.trial.identities import RunIdentities, keep_artefacts, secret_requests
from labconsole_amqp.trial.message_table import message_tables
from labconsole_amqp.trial.metrics import METRICS
from labconsole_amqp.wire.envelope import Protection
from labconsole_amqp.wire.payload import load_payload

_LEAD_NS = 20_000_000
"""T0 is this far in the future, so that all roles know it before."""
_READY_S = 30.0
_READY_AFTER_DRAINING_S = 600.0
"""How long a role may take to connect; the second one where the queue is drained first."""
_GRACE_S = 2.0
"""How long roles may take to finish after they are asked to stop."""
_PAUSE_NS = 100_000_000
"""Between the last message of the first phase and the first of the second."""
_LONGEST_DRAIN_S = 3600.0
"""Longest wait for a sender in the first phase; it fails by itself where messages are no longer acknowledged."""
_POLL_S = 0.02

_SENDER = "labconsole_amqp.roles.sender_role:SenderRole"
_RECEIVER = "labconsole_amqp.roles.receiver_role:ReceiverRole"
_BROKER = "labconsole_amqp.roles.broker_role:BrokerRole"
_SHAPER = "labconsole_amqp.roles.shaper_role:ShaperRole"


class AmqpTrial(Trial[AmqpParameters]):
    """Sends messages through a broker, plain or with TLS, signed, encrypted, and measures the cost."""

    kind: ClassVar[str] = "amqp.messaging"
    title: ClassVar[str] = "AMQP 1.0 (SWIM)"
    description: ClassVar[str] = (
        "What do TLS, message signing and body encryption cost in throughput and latency, between two States' brokers?"
    )
    parameters: ClassVar[type[Parameters]] = AmqpParameters
    series: ClassVar[tuple[Series, ...]] = (SENT, ACKNOWLEDGED, RECEIVED)
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
    definitions: ClassVar[int] = 3

    def secrets(self, parameters: AmqpParameters) -> tuple[SecretRequest, ...]:
        return tuple(secret_requests(parameters))

    def run(self, parameters: AmqpParameters, context: RunContext) -> None:
        payload = load_payload(parameters.payload, as_string=parameters.protection is not Protection.SIGNED_ENCRYPTED)
        identities = RunIdentities(parameters)
        specs = role_specs(parameters, identities)
        for note in identities.notes:
            context.event("identities", note)
        brokers, shapers, receivers, senders = ([context.start(spec) for spec in group] for group in specs)
        host, port = parameters.host, parameters.port
        for broker in brokers:
            info = broker.ready()
            host, port = info["host"], info["port"]
            broker.begin(now_ns())
        direct = connect_command(host, port)
        shaped = [_shaped_command(shaper, direct, parameters) for shaper in shapers]
        sender_info: Mapping[str, Any] = {}
        # One after the other, so that none disturbs the other's connect time; the first checks the queue.
        for role in (*receivers, *senders):
            if context.stop_requested:
                return
            end = Mode.SENDER if role in senders else Mode.RECEIVER
            role.command(shaped[0] if parameters.is_shaped_for(end) else direct)
            info = role.ready(_READY_AFTER_DRAINING_S if parameters.leftover is Leftover.DRAIN else _READY_S)
            sender_info = info if role in senders else sender_info
        keep_artefacts(parameters, identities, payload, sender_info, context)
        for broker in brokers:
            broker.command(MEASURE_COMMAND)
        begin_ns = now_ns() + _LEAD_NS
        for role in (*receivers, *senders):
            role.begin(begin_ns)
        channel = SENT_CHANNEL if parameters.mode is Mode.SENDER else RECEIVED_CHANNEL
        total = 0 if parameters.loop is Loop.BOTH else parameters.per_sender * parameters.senders
        context.expect(total, channel.name, begin_ns)
        context.event("T0", f"T0: begin. Senders: {len(senders)}, receivers: {len(receivers)}.", begin_ns=begin_ns)
        self._conduct(parameters, context, receivers, senders)
        if context.stop_requested:
            _stop_roles(senders)
            _stop_roles(receivers)
            return
        for role in (*shapers, *brokers):
            role.stop()
            role.finish()

    def _conduct(
        self,
        parameters: AmqpParameters,
        context: RunContext,
        receivers: Sequence[RoleHandle],
        senders: Sequence[RoleHandle],
    ) -> None:
        """Wait for the senders, then for the receivers."""
        if parameters.loop is Loop.BOTH:
            _conduct_phases(parameters, context, receivers, senders)
        context.wait(
            senders,
            stall_s=parameters.longest_wait,
            reason=f"No message moved for {parameters.longest_wait:g} s: the broker gives no credit, since its queue "
            "is full and no receiver empties it, or a limit holds it back; check the queue there.",
        )
        if context.stop_requested:
            return
        if senders:
            results = [sender.finish() for sender in senders]
            sent, reconnects = (sum(result[name] for result in results) for name in ("sent", "reconnects"))
            for receiver in receivers:
                receiver.command(senders_done(sent, reconnects))
        context.wait(
            receivers,
            stall_s=parameters.longest_wait + _GRACE_S,
            reason="The receiver does not finish: read the log.",
        )

    def evaluate(self, parameters: AmqpParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        return evaluation.evaluate(parameters, samples, events)

    def curves(self, parameters: AmqpParameters, samples: Samples, events: Sequence[Event]) -> tuple[Curve, ...]:
        return curves.curves(parameters, samples, events)

    def distributions(
        self, parameters: AmqpParameters, samples: Samples, events: Sequence[Event]
    ) -> tuple[Distribution, ...]:
        return latency.distributions(parameters, samples, events)

    def contrast(self, reference: AmqpParameters, other: AmqpParameters) -> str:
        return _contrast_label(reference, other)

    def questions(self, reference: AmqpParameters, other: AmqpParameters) -> tuple[Question, ...]:
        return _questions(reference, other)

    def derived(
        self, parameters: AmqpParameters, samples: Samples, events: Sequence[Event]
    ) -> tuple[DerivedTable, ...]:
        return message_tables(parameters, samples, events)

    def warnings(self, parameters: AmqpParameters) -> tuple[str, ...]:
        warnings = []
        if parameters.loop is Loop.CLOSED:
            warnings.append(
                "Closed loop: each message waits in queues at sender, broker and receiver, as in the source, so that "
                "its time in queue is not the link's latency."
            )
        if parameters.settlement is Settlement.PRE_SETTLED:
            warnings.append("Pre-settled: no message is acknowledged, so one may be lost without a fault.")
        if parameters.mode is Mode.RECEIVER:
            measured = "Time in queue" if parameters.loop is Loop.CLOSED else "Latency"
            warnings.append(
                f"{measured} is from the time stamp in the message (1 ms steps) by this computer's wall clock, and so "
                "includes the difference of the two clocks."
            )
        if parameters.username and not parameters.tls:
            warnings.append(
                "User name and password go to the broker unencrypted (SASL PLAIN over TCP), and can be read on the way."
            )
        if parameters.broker is BrokerChoice.EMBEDDED:
            warnings.append(
                "Embedded broker: sender, receiver and broker share one computer, over its loopback interface."
            )
        return tuple(warnings)


def _shaped_command(shaper: RoleHandle, direct: Mapping[str, Any], parameters: AmqpParameters) -> dict[str, Any]:
    """Start a shaper in front of the broker; the command to connect over it."""
    shaper.command(direct)
    port = shaper.ready(_READY_S + parameters.link_calibration + parameters.shaped_link.settling_s)["port"]
    shaper.begin(now_ns())
    return connect_command(direct["host"], direct["port"], port)


def _stop_roles(roles: Sequence[RoleHandle]) -> None:
    """Let roles finish, so that they record their state; the engine ends those that are late."""
    for role in roles:
        role.stop()
    deadline = time.monotonic() + _GRACE_S
    while any(role.running for role in roles) and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def role_specs(parameters: AmqpParameters, identities: RunIdentities) -> tuple[tuple[RoleSpec, ...], ...]:
    """Brokers, shapers, receivers and senders of a run, each group in the order in which its roles are started."""
    shaper = RoleSettings(parameters=parameters, role="shaper")
    shapers = (shaper.spec("shaper", _SHAPER),) if parameters.is_shaped else ()
    receivers, senders = _receivers(parameters, identities), _senders(parameters, identities)
    return _brokers(parameters, identities), shapers, receivers, senders


def _brokers(parameters: AmqpParameters, identities: RunIdentities) -> tuple[RoleSpec, ...]:
    if parameters.broker is BrokerChoice.EXTERNAL:
        return ()
    settings = RoleSettings(
        parameters=parameters,
        role="broker",
        identity=identities.files("broker") if parameters.tls else None,
    )
    return (settings.spec("broker", _BROKER),)


def _receivers(parameters: AmqpParameters, identities: RunIdentities) -> tuple[RoleSpec, ...]:
    if parameters.mode is Mode.SENDER:
        return ()
    tls = parameters.tls
    return tuple(
        RoleSettings(
            parameters=parameters,
            role="receiver",
            index=index,
            identity=identities.files("receiver") if tls else None,
            message_identity=identities.message_files("receiver"),
            server_name=identities.server_name if tls else "",
            peer_certificate=identities.message_certificate("sender"),
            check_queue=index == 0 and parameters.mode is Mode.BOTH and parameters.broker is BrokerChoice.EXTERNAL,
        ).spec(f"receiver-{index}", _RECEIVER)
        for index in range(parameters.receivers)
    )


def _senders(parameters: AmqpParameters, identities: RunIdentities) -> tuple[RoleSpec, ...]:
    if parameters.mode is Mode.RECEIVER:
        return ()
    tls = parameters.tls
    return tuple(
        RoleSettings(
            parameters=parameters,
            role="sender",
            index=index,
            identity=identities.files("sender") if tls else None,
            message_identity=identities.message_files("sender"),
            server_name=identities.server_name if tls else "",
            peer_certificate=identities.message_certificate("receiver"),
            check_queue=index == 0 and parameters.mode is Mode.SENDER,
        ).spec(f"sender-{index}", _SENDER)
        for index in range(parameters.senders)
    )


def _conduct_phases(
    parameters: AmqpParameters, context: RunContext, receivers: Sequence[RoleHandle], senders: Sequence[RoleHandle]
) -> None:
    """Wait for the first phase, and command the start of the open loop. Raises UserError."""
    longest_s = parameters.full_speed + _LONGEST_DRAIN_S
    sent = [sender.report(longest_s)["sent"] for sender in senders]
    left = sum(sent) - _received(parameters, receivers, sum(sent))
    begin_ns = now_ns() + _PAUSE_NS
    context.event(
        OPEN_LOOP,
        f"All queues are empty; the open loop begins: {parameters.rate:g} messages per second of each sender."
        if left <= 0
        else f"{left} messages of the first phase did not arrive; the open loop begins nevertheless.",
        begin_ns=begin_ns,
        first=sent,
    )
    for role in (*receivers, *senders):
        role.command(open_loop_command(begin_ns, sent))


def _received(parameters: AmqpParameters, receivers: Sequence[RoleHandle], sent: int) -> int:
    """Wait until all `sent` messages are received, or none for `patience`; returns the number received."""
    last, since = -1, time.monotonic()
    while True:
        for receiver in receivers:
            receiver.command(COUNT_COMMAND)
        received = sum(int(receiver.report(parameters.patience)["received"]) for receiver in receivers)
        if received >= sent or time.monotonic() - since > parameters.patience:
            return received
        if received != last:
            last, since = received, time.monotonic()
        time.sleep(_POLL_S)


_ADDED = {2: "TLS", 3: "signing", 4: "encryption"}
_LABELS = {
    (1, 2): "TLS against plain",
    (1, 3): "TLS and signing against plain",
    (1, 4): "TLS, signing and encryption against plain",
    (2, 3): "Signing against TLS",
    (2, 4): "Signing and encryption against TLS",
    (3, 4): "Encryption against signing",
}

_MAY_DIFFER = frozenset({"test", "count", "port"})


def _contrast_label(reference: AmqpParameters, other: AmqpParameters) -> str:
    """The name of a contrast, such as "TLS against plain"; empty where the two are not a fair pair.

    They are a fair pair where `other` does more to each message than `reference`, and all else is equal.
    The number of messages may differ: slow tests have fewer, throughput is per second and latency per message.
    (In a closed loop latency grows until the queue or the credit window is full: a run of fewer messages may show less
    of it.) So may the port, since a broker has another one for TLS, and what has an effect in one of the tests only.
    """
    label = _LABELS.get((reference.test, other.test), "")
    one, two = reference.model_dump(mode="json"), other.model_dump(mode="json")
    unlike = (
        name
        for name in one.keys() - _MAY_DIFFER
        if one[name] != two[name] and all(in_effect(name, values, AmqpParameters) for values in (one, two))
    )
    return "" if any(unlike) else label


def _questions(reference: AmqpParameters, other: AmqpParameters) -> tuple[Question, ...]:
    """Questions on the cost of `other` over `reference`: in throughput, in latency at an equal rate."""
    if not _contrast_label(reference, other):
        return ()
    *first, last = (_ADDED[test] for test in range(reference.test + 1, other.test + 1))
    added = f"{', '.join(first)} and {last}" if first else last
    throughput = Question(
        f"What does {added} cost in throughput?",
        "throughput",
        added[0].upper() + added[1:],
        left_of="messages a second",
    )
    latency = Question(f"What does {added} cost in latency?", "latency_mean", f"With {added}")
    by_loop = {Loop.CLOSED: (throughput,), Loop.OPEN: (latency,), Loop.BOTH: (throughput, latency)}
    return by_loop[other.loop]
