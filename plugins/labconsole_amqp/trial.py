"""The AMQP trial: Tests 1-4 of `swim-wp16.txt` between a sender and a receiver, through a broker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from labconsole.clock import now_ns
from labconsole.locations import identities_dir
from labconsole.security.identities import IdentityFiles
from labconsole.security.lab_identities import BROKER, STATE_A, STATE_B, LabIdentities, lab_identities
from labconsole.trial import (
    Curve,
    Evaluation,
    Event,
    LiveChannel,
    MetricKind,
    Parameters,
    RoleHandle,
    RoleSpec,
    RunContext,
    Samples,
    Series,
    Trial,
    TrialError,
)
from labconsole_amqp import curves, evaluation
from labconsole_amqp.metrics import METRICS
from labconsole_amqp.parameters import AmqpParameters, BrokerChoice, Loop, Mode
from labconsole_amqp.role_settings import RoleSettings
from labconsole_amqp.samples import (
    ACKNOWLEDGED,
    FAILED_CHANNEL,
    LATENCY_CHANNEL,
    RECEIVED,
    RECEIVED_CHANNEL,
    SENT,
    SENT_CHANNEL,
)

_LEAD_NS = 20_000_000
"""T0 lies this far ahead, so that every role has heard of it."""

_SENDER = "labconsole_amqp.sender:SenderRole"
_RECEIVER = "labconsole_amqp.receiver:ReceiverRole"
_BROKER = "labconsole_amqp.broker_role:BrokerRole"


class AmqpTrial(Trial[AmqpParameters]):
    """Send messages through a broker, plain or with TLS, signed, encrypted, and measure what it costs."""

    kind: ClassVar[str] = "amqp.messaging"
    title: ClassVar[str] = "AMQP messaging, Tests 1-4"
    description: ClassVar[str] = (
        "What do TLS, message signing and body encryption cost in throughput and latency, between two States' brokers?"
    )
    parameters: ClassVar[type[Parameters]] = AmqpParameters
    series: ClassVar[tuple[Series, ...]] = (SENT, ACKNOWLEDGED, RECEIVED)
    metrics: ClassVar[tuple[MetricKind, ...]] = METRICS
    live: ClassVar[tuple[LiveChannel, ...]] = (SENT_CHANNEL, RECEIVED_CHANNEL, LATENCY_CHANNEL, FAILED_CHANNEL)

    def roles(self, parameters: AmqpParameters) -> tuple[RoleSpec, ...]:
        lab = lab_identities(identities_dir()) if parameters.tls else None
        broker = _broker(parameters, lab) if parameters.broker is BrokerChoice.EMBEDDED else ()
        host, port = (parameters.host, parameters.port) if not broker else ("", 0)
        return broker + _receivers(parameters, lab, host, port) + _senders(parameters, lab, host, port)

    def run(self, parameters: AmqpParameters, context: RunContext) -> None:
        lab = lab_identities(identities_dir()) if parameters.tls else None
        for note in lab.notes if lab else ():
            context.event("identities", note)
        host, port = parameters.host, parameters.port
        broker: list[RoleHandle] = []
        if parameters.broker is BrokerChoice.EMBEDDED:
            broker = [context.start(spec) for spec in _broker(parameters, lab)]
            info = broker[0].ready()
            host, port = info["host"], info["port"]
            broker[0].begin(now_ns())
        receivers = _started(context, _receivers(parameters, lab, host, port))
        senders = _started(context, _senders(parameters, lab, host, port))
        if context.stop_requested:
            return
        begin_ns = now_ns() + _LEAD_NS
        for role in (*receivers, *senders):
            role.begin(begin_ns)
        channel = SENT_CHANNEL if parameters.mode is Mode.SENDER else RECEIVED_CHANNEL
        context.expect(parameters.per_sender * parameters.senders, channel.name)
        context.event("T0", f"{len(senders)} senders and {len(receivers)} receivers begin.", begin_ns=begin_ns)
        self._conduct(parameters, context, broker, receivers, senders)

    def _conduct(
        self,
        parameters: AmqpParameters,
        context: RunContext,
        broker: list[RoleHandle],
        receivers: list[RoleHandle],
        senders: list[RoleHandle],
    ) -> None:
        """Wait for the senders, then for the receivers, and end the broker last."""
        patience = parameters.patience
        stalled = f"No message moved for {patience:g} s: "
        context.wait(
            senders, stall_s=patience, reason=stalled + "the broker gives no credit, or nobody empties its queue."
        )
        if context.stop_requested:
            for role in (*senders, *receivers):
                role.stop()
            return
        if parameters.receivers > 1:
            for role in receivers:
                role.stop()
        missing = stalled + "the receiver still waits for messages that do not come."
        context.wait(receivers, stall_s=patience, reason=missing)
        for role in broker:
            role.stop()
            role.finish()

    def evaluate(self, parameters: AmqpParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        return evaluation.evaluate(parameters, samples, events)

    def curves(self, parameters: AmqpParameters, samples: Samples, events: Sequence[Event]) -> tuple[Curve, ...]:
        return curves.curves(parameters, samples, events)

    def warnings(self, parameters: AmqpParameters) -> tuple[str, ...]:
        told = []
        if parameters.loop is Loop.CLOSED:
            told.append("Closed loop: latency includes queueing between sender and receiver, as in the source.")
        if parameters.mode is Mode.RECEIVER:
            told.append(
                "Latency is from the time stamp in the message (1 ms steps) by this computer's wall clock, and so "
                "includes the difference of the two clocks."
            )
        if parameters.broker is BrokerChoice.EMBEDDED:
            told.append("Embedded broker: sender, receiver and broker share one computer, over its loopback interface.")
        return tuple(told)


def _started(context: RunContext, specs: Sequence[RoleSpec]) -> list[RoleHandle]:
    """Start roles and wait until each is ready. The first looks into the queue, so it goes ahead."""
    handles: list[RoleHandle] = []
    for spec in specs:
        handle = context.start(spec)
        handles.append(handle)
        if len(handles) == 1:
            handle.ready()
    for handle in handles:
        handle.ready()
    return handles


def _broker(parameters: AmqpParameters, lab: LabIdentities | None) -> tuple[RoleSpec, ...]:
    own = lab.files(BROKER) if lab else None
    settings = RoleSettings(parameters=parameters, own=own, trust=_trust(parameters, lab))
    return (RoleSpec("broker", _BROKER, settings.to_json()),)


def _receivers(parameters: AmqpParameters, lab: LabIdentities | None, host: str, port: int) -> tuple[RoleSpec, ...]:
    if parameters.mode is Mode.SENDER:
        return ()
    return tuple(
        RoleSpec(
            f"receiver-{index}",
            _RECEIVER,
            RoleSettings(
                parameters=parameters,
                index=index,
                host=host,
                port=port,
                own=_receiver_files(parameters, lab) if lab else None,
                trust=_trust(parameters, lab),
                peer_certificate=_sender_files(parameters, lab).certificate if lab else None,
                check_queue=index == 0 and parameters.mode is Mode.BOTH and parameters.broker is BrokerChoice.EXTERNAL,
            ).to_json(),
        )
        for index in range(parameters.receivers)
    )


def _senders(parameters: AmqpParameters, lab: LabIdentities | None, host: str, port: int) -> tuple[RoleSpec, ...]:
    if parameters.mode is Mode.RECEIVER:
        return ()
    return tuple(
        RoleSpec(
            f"sender-{index}",
            _SENDER,
            RoleSettings(
                parameters=parameters,
                index=index,
                host=host,
                port=port,
                own=_sender_files(parameters, lab) if lab else None,
                trust=_trust(parameters, lab),
                peer_certificate=_receiver_files(parameters, lab).certificate if lab else None,
                check_queue=index == 0 and parameters.mode is Mode.SENDER,
            ).to_json(),
        )
        for index in range(parameters.senders)
    )


def _trust(parameters: AmqpParameters, lab: LabIdentities | None) -> Path | None:
    if parameters.trust:
        return Path(parameters.trust)
    return lab.authority_file if lab else None


def _sender_files(parameters: AmqpParameters, lab: LabIdentities) -> IdentityFiles:
    return _files(
        parameters.sender_certificate, parameters.sender_key, parameters.sender_passphrase_file, lab.files(STATE_A)
    )


def _receiver_files(parameters: AmqpParameters, lab: LabIdentities) -> IdentityFiles:
    return _files(
        parameters.receiver_certificate,
        parameters.receiver_key,
        parameters.receiver_passphrase_file,
        lab.files(STATE_B),
    )


def _files(certificate: str, key: str, passphrase_file: str, lab: IdentityFiles) -> IdentityFiles:
    """The operator's files where a certificate is named (a peer's comes without key), else the lab's."""
    if not certificate:
        if key:
            raise TrialError(f"The key {key} needs its certificate: name both, or neither for the lab identity.")
        return lab
    return IdentityFiles(
        certificate=Path(certificate),
        key=Path(key or certificate),
        passphrase_file=Path(passphrase_file) if passphrase_file else None,
    )
