"""The parameters of the AMQP trial: what the form shows and a profile sets."""

from __future__ import annotations

from typing import Literal

from pydantic import ValidationInfo, field_validator

from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole_amqp.choices import (
    LABELS,
    WITH_EMBEDDED_BROKER,
    WITH_EXTERNAL_BROKER,
    WITH_SIGNATURES,
    BrokerChoice,
    Leftover,
    Loop,
    Mode,
    Settlement,
    ShapedEnds,
)
from labconsole_amqp.envelopes.example import example_size
from labconsole_amqp.envelopes.formats import HARDENED, EnvelopeFormat
from labconsole_amqp.envelopes.message_envelope import MessageForm
from labconsole_amqp.identity_parameters import IdentityParameters
from labconsole_amqp.shaping.shaped_link import ShapedLinkParameters
from labconsole_amqp.two_console_parameters import TwoConsoleParameters
from labconsole_amqp.wire.envelope import FieldsIn, Protection, encoded_size
from labconsole_amqp.wire.sign_encrypt import Outcome

TEST_TITLES = {
    1: "Test 1: plain TCP",
    2: "Test 2: TLS with client certificate",
    3: "Test 3: TLS and message signing",
    4: "Test 4: TLS, signing and body encryption",
}

TEST_DESCRIPTIONS = {
    1: "No TLS, no signature: the benchmark of the other three.",
    2: "TLS on the connection; the client proves itself by its certificate (SASL EXTERNAL).",
    3: "As Test 2, and every message carries the sender's signature (in the source RSA, SHA-256): non-repudiation.",
    4: "As Test 3, and every body is encrypted for the receiver (in the source AES-256-CBC, key wrapped by RSA-OAEP).",
}


_COUNTED = {"loop": ["closed", "open"]}
_PHASES = {"loop": "both"}
_SWEEP = {"loop": "sweep"}
_HARDENED = {**WITH_SIGNATURES, "envelope": [format.value for format in HARDENED]}
_EXAMPLE_NAMES = "CN=state-a,O=Lab Console", "CN=state-b,O=Lab Console"
"""Sender and recipient as the lab's identities have them."""


class _MessagingParameters(Parameters):
    """All but identities and link, which come last in the form."""

    test: Literal[1, 2, 3, 4] = parameter(
        "Test",
        "1 plain TCP, 2 TLS with client certificate, 3 TLS and signing, 4 TLS, signing and encryption",
        default=1,
        group="Test",
    )
    payload: str = parameter(
        "Payload",
        "small (11 B), fpl-tac (237 B), fpl-fixm (41.7 KB), or the path of any file",
        default="fpl-tac",
        min_length=1,
        group="Test",
        choices=["small", "fpl-tac", "fpl-fixm"],
    )
    count: int = parameter(
        "Messages",
        "Messages that each sender sends and that count for the figures",
        default=10_000,
        ge=1,
        le=100_000_000,
        group="Test",
        shown_if=_COUNTED,
    )
    warm_up: int = parameter(
        "Warm-up",
        "Messages that each sender sends first and that are left out of throughput and latency",
        default=0,
        ge=0,
        le=1_000_000,
        group="Test",
        unit="messages",
        shown_if=_COUNTED,
    )

    mode: Mode = parameter(
        "This console plays",
        "Both ends, or one of them while a second operator plays the other",
        default=Mode.BOTH,
        group="Broker",
        labels=LABELS["mode"],
    )
    broker: BrokerChoice = parameter(
        "Broker",
        "The broker that comes with the console, or any AMQP 1.0 broker",
        default=BrokerChoice.EMBEDDED,
        group="Broker",
        labels=LABELS["broker"],
    )
    host: str = parameter(
        "Host",
        "Host name or address of the broker",
        default="127.0.0.1",
        min_length=1,
        group="Broker",
        kind="host",
        shown_if=WITH_EXTERNAL_BROKER,
    )
    port: int = parameter(
        "Port",
        "TCP port of the broker: usually 5672 for Test 1 and 5671 with TLS",
        default=5672,
        ge=1,
        le=65535,
        group="Broker",
        kind="port",
        shown_if=WITH_EXTERNAL_BROKER,
    )
    address: str = parameter(
        "Queue",
        "Address of the queue, as the broker spells it (RabbitMQ: /amq/queue/NAME)",
        default="labconsole",
        min_length=1,
        group="Broker",
    )
    username: str = parameter(
        "User name",
        "For SASL PLAIN; empty: the client certificate (EXTERNAL) or no identity (ANONYMOUS)",
        default="",
        group="Broker",
        shown_if=WITH_EXTERNAL_BROKER,
    )
    password_file: str = parameter(
        "Password file",
        "File with the password, readable by you alone (0600); empty: the keyring, else you are asked",
        default="",
        group="Broker",
        kind="secret-file",
        shown_if=WITH_EXTERNAL_BROKER,
    )
    leftover: Leftover = parameter(
        "Queue not empty",
        "Refuse to start, or discard what is in the queue",
        default=Leftover.REFUSE,
        group="Broker",
        labels=LABELS["leftover"],
        shown_if=WITH_EXTERNAL_BROKER,
    )
    queue_depth: int = parameter(
        "Queue depth",
        "Messages that the embedded broker holds before it stops giving credit",
        default=20_000,
        ge=1,
        le=10_000_000,
        group="Broker",
        unit="messages",
        shown_if=WITH_EMBEDDED_BROKER,
    )
    max_message_size: int = parameter(
        "Largest message",
        "Largest message that the embedded broker accepts and a receiver waits for; 0: no limit",
        default=128 * 1024 * 1024,
        ge=0,
        group="Broker",
        unit="B",
    )

    loop: Loop = parameter(
        "Loop",
        (
            "Closed: as fast as credit allows, as in the source. Open: at a rate, whatever comes of it. "
            "Both phases: throughput at full speed, then latency at the rate, in one run that goes by time. "
            "Rate sweep: the highest rate at which latency stays under a limit"
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
        shown_if={"loop": ["open", "both", "sweep"]},
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
    durable: bool = parameter(
        "Durable",
        "Ask the broker to keep messages over a restart (3 to 7 bytes more)",
        default=False,
        group="Envelope",
    )
    envelope: EnvelopeFormat = parameter(
        "Envelope",
        "Format of signed and encrypted messages: the source's, or a hardened one that also signs sender, recipient, "
        "address, message id and time, and refuses replays",
        default=EnvelopeFormat.SEED_2025,
        group="Envelope",
        labels={format.value: format.label for format in EnvelopeFormat},
        shown_if=WITH_SIGNATURES,
    )
    fields_in: FieldsIn = parameter(
        "Signature fields in",
        "Application properties (as MY to SG in the source) or message annotations (Within Malaysia)",
        default=FieldsIn.APPLICATION_PROPERTIES,
        group="Envelope",
        labels=LABELS["fields_in"],
        shown_if={**WITH_SIGNATURES, "envelope": EnvelopeFormat.SEED_2025.value},
    )
    time_tolerance: float = parameter(
        "Time tolerance",
        "A receiver refuses messages that were created longer ago, or so far in the future: allow for waiting in the "
        "queue, and for the difference of the clocks",
        default=600.0,
        ge=1,
        le=86_400,
        group="Envelope",
        unit="s",
        shown_if=_HARDENED,
    )
    replay_window: int = parameter(
        "Replay window",
        "How many messages one may arrive after a later one of its sender; a receiver refuses older ones and repeats",
        default=4096,
        ge=1,
        le=1_000_000,
        group="Envelope",
        unit="messages",
        shown_if=_HARDENED,
    )
    numbered: bool = parameter(
        "Number messages",
        "Add a message id: tells messages of several senders apart; the source's tool has none",
        default=False,
        group="Envelope",
    )

    # What does not go together is a fault of the field that comes last, so that a form can show it there. A field that
    # is wrong by itself is not in `info.data`.

    @field_validator("broker")
    @classmethod
    def _check_broker_fits_mode(cls, broker: BrokerChoice, info: ValidationInfo) -> BrokerChoice:
        if broker is BrokerChoice.EMBEDDED and info.data.get("mode", Mode.BOTH) is not Mode.BOTH:
            raise ValueError("a console that plays one end needs an external broker: set `broker` to external")
        return broker

    @field_validator("loop")
    @classmethod
    def _check_loop_fits_mode(cls, loop: Loop, info: ValidationInfo) -> Loop:
        """Only a console that plays both ends can wait until the queue is empty between phases or steps."""
        if loop in (Loop.BOTH, Loop.SWEEP) and info.data.get("mode", Mode.BOTH) is not Mode.BOTH:
            what = "both phases need" if loop is Loop.BOTH else "a rate sweep needs"
            raise ValueError(f"{what} both ends in this console: set `mode` to both, or `loop` to open")
        return loop

    @field_validator("numbered")
    @classmethod
    def _check_messages_numbered(cls, numbered: bool, info: ValidationInfo) -> bool:
        values = info.data
        if numbered:
            return numbered
        if values.get("senders", 1) > 1 or values.get("receivers", 1) > 1:
            raise ValueError(
                "with several senders or receivers messages need numbers to be distinguished: set `numbered` to true"
            )
        counts = values.get("loop") in (Loop.BOTH, Loop.SWEEP) or values.get("mode") is Mode.RECEIVER
        if values.get("reconnect") and counts:
            raise ValueError(
                "messages that are sent again after a lost connection need numbers, so that none is counted twice: set "
                "`numbered` to true, or `reconnect` to 0"
            )
        return numbered

    @property
    def tls(self) -> bool:
        """Whether the connections use TLS (Tests 2-4)."""
        return self.test >= 2

    @property
    def protection(self) -> Protection:
        """What is done to each payload."""
        return {3: Protection.SIGNED, 4: Protection.SIGNED_ENCRYPTED}.get(self.test, Protection.NONE)

    @property
    def message_form(self) -> MessageForm:
        """What is decided of each message besides its envelope."""
        return MessageForm(self.protection, self.durable, self.numbered, self.fields_in)

    def message_size(self, payload: int) -> int:
        """Bytes of an encoded message with so many bytes of payload, with the keys and names of the lab."""
        if self.protection is not Protection.NONE and self.envelope.is_hardened:
            return example_size(self.envelope, self.message_form, payload, *_EXAMPLE_NAMES, self.address)
        return encoded_size(payload, self.protection, self.fields_in, durable=self.durable, message_id=self.numbered)

    @property
    def duplicate_outcomes(self) -> tuple[Outcome, ...]:
        """Refusals that are counted as duplicates, and not as failed verifications.

        Where a lost connection is restored, messages are sent again: a repeat is refused all the same, and the verdict
        on duplicates decides whether a connection was lost.
        """
        return (Outcome.REPLAYED,) if self.reconnect else ()

    @property
    def is_counted(self) -> bool:
        """Whether the number of messages is set, rather than found by the run."""
        return self.loop in (Loop.CLOSED, Loop.OPEN)

    @property
    def per_sender(self) -> int:
        """Messages that each sender sends, warm-up included, where their number is set (`is_counted`)."""
        return self.warm_up + self.count

    @property
    def longest_wait(self) -> float:
        """Seconds that a console waits at most without a message: for the other console, or within a run."""
        return self.longest_gap if self.mode is Mode.BOTH else max(self.longest_gap, self.wait_for_peer)

    @property
    def longest_gap(self) -> float:
        """Seconds that may pass between two messages: `patience`, the interval of an open loop's rate, a reconnect."""
        return self.patience + self.reconnect + (0.0 if self.loop is Loop.CLOSED else 1 / self.rate)


class AmqpParameters(ShapedLinkParameters, IdentityParameters, TwoConsoleParameters, _MessagingParameters):
    """One scenario of the AMQP trial (`swim-wp16.txt`, "Testing Scenarios")."""

    @property
    def narrowest_rate(self) -> float | None:
        """The rate of the link in Mbit/s, of the directions that messages take; None where it is not known."""
        if self.link_rate is None or not self.is_shaped or self.link_rate_down is None:
            return self.link_rate
        rates = {ShapedEnds.SENDER: self.link_rate, ShapedEnds.RECEIVER: self.link_rate_down}
        ends = self.link_ends if self.mode is Mode.BOTH else ShapedEnds(self.mode.value)
        return rates.get(ends, min(rates.values()))


def field_label(field: str) -> str:
    """A parameter's name in a sentence: the form's title, and the key for profiles and command line."""
    return f'"{AmqpParameters.model_fields[field].title}" ({field})'
