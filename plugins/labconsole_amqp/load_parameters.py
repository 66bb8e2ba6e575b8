"""The parameters of the AMQP trial's load: its loop, rate, clients, credit and time limits."""

from __future__ import annotations

from pydantic import ValidationInfo, field_validator

from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole_amqp.broker_parameters import split_addresses
from labconsole_amqp.choices import LABELS, WITH_SIGNATURES, BrokerChoice, Loop, Mode, Settlement
from labconsole_amqp.payload_parameters import is_stored

_PHASES = {"loop": "both"}
_SWEEP = {"loop": "sweep"}
_SOAK = {"loop": "soak"}


class LoadParameters(Parameters):
    """How messages are sent and received."""

    loop: Loop = parameter(
        "Loop",
        (
            "Closed: as fast as credit allows, as in the source. Open: at a rate, whatever comes of it. "
            "Both phases: throughput at full speed, then latency at the rate, in one run that goes by time. "
            "Rate sweep: the highest rate at which latency stays under a limit. "
            "Soak: at a rate for hours, to see whether latency, memory or CPU time drift"
        ),
        default=Loop.CLOSED,
        group="Load",
        labels=LABELS["loop"],
    )
    rate: float = parameter(
        "Rate",
        "Messages per second of each sender; of a rate sweep, in its first step",
        default=1000.0,
        gt=0,
        le=1_000_000,
        group="Load",
        unit="msg/s",
        shown_if={"loop": ["open", "both", "sweep", "soak"]},
    )
    full_speed: float = parameter(
        "Full speed for",
        "Length of the phase that gives throughput, after 0.3 s of warm-up",
        default=5.0,
        ge=0.1,
        le=86_400,
        group="Load",
        unit="s",
        shown_if=_PHASES,
    )
    open_loop: float = parameter(
        "Open loop for",
        "Length of the phase that gives latency, after 0.2 s of warm-up: messages leave at the rate",
        default=20.0,
        ge=0.1,
        le=86_400,
        group="Load",
        unit="s",
        shown_if=_PHASES,
    )
    p99_limit: float = parameter(
        "Limit of p99",
        "The latency that 99 % of the messages must keep",
        default=20.0,
        gt=0,
        le=60_000,
        group="Load",
        unit="ms",
        shown_if=_SWEEP,
    )
    step: float = parameter(
        "Step",
        "Length of each step of the sweep, after 0.2 s of warm-up",
        default=2.0,
        ge=0.5,
        le=3600,
        group="Load",
        unit="s",
        shown_if=_SWEEP,
    )
    hours: float = parameter(
        "Soak for",
        "Length of the soak, also a fraction of an hour. Drift is judged from 5 minutes on",
        default=1.0,
        ge=0.001,
        le=720,
        group="Load",
        unit="h",
        shown_if=_SOAK,
    )
    senders: int = parameter("Senders", "Sender processes", default=1, ge=1, le=16, group="Load")
    receivers: int = parameter("Receivers", "Receiver processes", default=1, ge=1, le=16, group="Load")
    credit: int = parameter(
        "Credit window",
        "Messages that a receiver lets the broker send ahead",
        default=1000,
        ge=1,
        le=100_000,
        group="Load",
        unit="messages",
    )
    settlement: Settlement = parameter(
        "Settlement",
        "Acknowledged (at least once) or pre-settled (at most once)",
        default=Settlement.ACKNOWLEDGED,
        group="Load",
        labels=LABELS["settlement"],
    )
    crypto_threads: int = parameter(
        "Crypto threads",
        "Threads that sign and encrypt in a sender, and verify and decrypt in a receiver",
        default=2,
        ge=1,
        le=64,
        group="Load",
        shown_if=WITH_SIGNATURES,
    )
    patience: float = parameter(
        "Timeout without progress",
        "How long no message may move: then a stuck sender fails, and messages that a receiver misses count as lost",
        default=30.0,
        ge=1,
        le=3600,
        group="Load",
        unit="s",
    )
    reconnect: float = parameter(
        "Reconnect within",
        "How long a sender or receiver that has lost its connection tries to restore it. Messages without "
        "acknowledgement are sent again: none is lost, some may come twice. 0: a lost connection ends the run",
        default=0.0,
        ge=0,
        le=3600,
        group="Load",
        unit="s",
    )
    wait_for_peer: float = parameter(
        "Wait for the other console",
        "How long a console that plays one end waits for the other to begin",
        default=300.0,
        ge=1,
        le=86_400,
        group="Load",
        unit="s",
        shown_if={"mode": ["sender", "receiver"]},
    )

    @field_validator("loop")
    @classmethod
    def _check_loop_fits_mode(cls, loop: Loop, info: ValidationInfo) -> Loop:
        """Only a console that plays both ends can wait until the queue is empty between phases or steps, and can say
        what drifts at which end."""
        needs = {Loop.BOTH: "both phases need", Loop.SWEEP: "a rate sweep needs", Loop.SOAK: "a soak needs"}
        if loop in needs and info.data.get("mode", Mode.BOTH) is not Mode.BOTH:
            raise ValueError(f"{needs[loop]} both ends in this console: set `mode` to both, or `loop` to open")
        return loop

    @field_validator("senders", "receivers")
    @classmethod
    def _check_each_queue_has_ends(cls, ends: int, info: ValidationInfo) -> int:
        """The receivers of a console that only sends are not this console's. Without a broker there is one of each."""
        field, queues = str(info.field_name), len(split_addresses(info.data.get("address", "")))
        if ends > 1 and info.data.get("broker") is BrokerChoice.NONE:
            raise ValueError(f"without a broker one sender connects to one receiver: set `{field}` to 1")
        if ends >= queues or is_stored(info) or (field == "receivers" and info.data.get("mode") is Mode.SENDER):
            return ends
        raise ValueError(
            f"each of the {queues} queues in `address` needs one: set `{field}` to {queues} or more, or name fewer "
            "queues"
        )
