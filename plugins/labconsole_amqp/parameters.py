"""The parameters of the AMQP trial: what the form shows and a profile sets."""

from __future__ import annotations

import math

from pydantic import ValidationInfo, field_validator

from labconsole.model.parameters import parameter
from labconsole_amqp.broker_parameters import BrokerParameters
from labconsole_amqp.choices import (
    LABELS,
    WITH_SIGNATURES,
    Loop,
    MessageKeys,
    Mode,
    ShapedEnds,
)
from labconsole_amqp.envelopes.example import example_size
from labconsole_amqp.envelopes.formats import HARDENED, EnvelopeFormat
from labconsole_amqp.envelopes.message_envelope import MessageForm
from labconsole_amqp.identity_parameters import IdentityParameters
from labconsole_amqp.load_parameters import LoadParameters
from labconsole_amqp.payload_parameters import PayloadParameters
from labconsole_amqp.shaping.shaped_link import ShapedLinkParameters
from labconsole_amqp.two_console_parameters import TwoConsoleParameters
from labconsole_amqp.wire.envelope import FieldsIn, Protection, encoded_size
from labconsole_amqp.wire.sign_encrypt import Outcome

_HARDENED = {**WITH_SIGNATURES, "envelope": [format.value for format in HARDENED]}
_EXAMPLE_NAMES = "CN=state-a,O=Lab Console", "CN=state-b,O=Lab Console"
"""Sender and recipient as the lab's identities have them."""


class _EnvelopeParameters(LoadParameters, BrokerParameters, PayloadParameters):
    """Envelopes, and what follows from them, payload, load and broker."""

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
            longest = max(self.addresses, key=lambda address: len(address.encode()))
            return example_size(self.envelope, self.message_form, payload, *_EXAMPLE_NAMES, longest)
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
        return self.loop in (Loop.CLOSED, Loop.OPEN, Loop.SOAK)

    @property
    def is_steady(self) -> bool:
        """Whether messages are due at one rate from T0 to the end."""
        return self.loop in (Loop.OPEN, Loop.SOAK)

    @property
    def per_sender(self) -> int:
        """Messages that each sender sends, warm-up included, where their number is set (`is_counted`)."""
        return self.warm_up + (math.ceil(self.rate * self.hours * 3600) if self.loop is Loop.SOAK else self.count)

    @property
    def longest_wait(self) -> float:
        """Seconds that a console waits at most without a message: for the other console, or within a run."""
        return self.longest_gap if self.mode is Mode.BOTH else max(self.longest_gap, self.wait_for_peer)

    @property
    def longest_gap(self) -> float:
        """Seconds that may pass between two messages: `patience`, the interval of an open loop's rate, a reconnect."""
        return self.patience + self.reconnect + (0.0 if self.loop is Loop.CLOSED else 1 / self.rate)


class AmqpParameters(ShapedLinkParameters, IdentityParameters, TwoConsoleParameters, _EnvelopeParameters):
    """One scenario of the AMQP trial (`swim-wp16.txt`, "Testing Scenarios")."""

    @property
    def pool_size(self) -> int:
        """Keys that each sender generates ahead, one for each message; 0 where one key signs all."""
        if self.protection is Protection.NONE or self.message_keys is not MessageKeys.POOL:
            return 0
        return self.per_sender if self.is_counted else self.pool_keys

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
