"""The parameters of the AMQP trial's broker and its queues."""

from __future__ import annotations

import re

from pydantic import ValidationInfo, field_validator

from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole_amqp.choices import (
    LABELS,
    WITH_EMBEDDED_BROKER,
    WITH_EXTERNAL_BROKER,
    BrokerChoice,
    Leftover,
    Mode,
)
from labconsole_amqp.payload_parameters import is_stored

_ADDRESS = re.compile(r'"([^"]+)"|([^\s,]+)')


class BrokerParameters(Parameters):
    """The broker, and the queues that messages take."""

    mode: Mode = parameter(
        "This console plays",
        "Both ends, or one of them while a second operator plays the other",
        default=Mode.BOTH,
        group="Broker",
        labels=LABELS["mode"],
    )
    broker: BrokerChoice = parameter(
        "Broker",
        "The broker that comes with the console, any AMQP 1.0 broker, or none: the receiver listens, and one sender "
        "connects to it",
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
        "Address of the queue, as the broker spells it (RabbitMQ: /amq/queue/NAME). Several, separated by spaces or "
        "commas: each sender and each receiver has one of them, in turn. A name with spaces or commas is put in double "
        "quotes",
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

    @field_validator("broker")
    @classmethod
    def _check_broker_fits_mode(cls, broker: BrokerChoice, info: ValidationInfo) -> BrokerChoice:
        if broker is not BrokerChoice.EXTERNAL and info.data.get("mode", Mode.BOTH) is not Mode.BOTH:
            raise ValueError("a console that plays one end needs an external broker: set `broker` to external")
        return broker

    @field_validator("address")
    @classmethod
    def _check_queues(cls, address: str, info: ValidationInfo) -> str:
        found = split_addresses(address)
        if is_stored(info):
            return address
        if not found:
            raise ValueError("there is no address in it: name a queue")
        if len(found) > 1 and info.data.get("broker") is BrokerChoice.NONE:
            raise ValueError("without a broker one sender connects to one receiver: name one queue")
        if twice := [one for one in found if found.count(one) > 1]:
            raise ValueError(f"the queue {twice[0]} is in it twice: name each queue once")
        return address

    @property
    def is_direct(self) -> bool:
        """Whether the sender connects to the receiver, without a broker."""
        return self.broker is BrokerChoice.NONE

    @property
    def addresses(self) -> tuple[str, ...]:
        """The queues, at least one."""
        return split_addresses(self.address) or (self.address,)

    def address_of(self, index: int) -> str:
        """The queue of the sender, or receiver, with this index: they have the queues in turn."""
        return self.addresses[index % len(self.addresses)]

    def sharing(self, address: str, ends: int) -> int:
        """How many of so many senders, or receivers, have this queue."""
        return sum(self.address_of(index) == address for index in range(ends))


def split_addresses(text: str) -> tuple[str, ...]:
    """The addresses in a text: separated by spaces or commas, in double quotes where they have some themselves."""
    return tuple(quoted or plain for quoted, plain in _ADDRESS.findall(text))
