"""The parameters of test, payload and broker of the AMQP trial."""

from __future__ import annotations

from typing import Literal

from pydantic import ValidationInfo, field_validator

from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole_amqp.choices import (
    LABELS,
    WITH_COUNT,
    WITH_EMBEDDED_BROKER,
    WITH_EXTERNAL_BROKER,
    BrokerChoice,
    Leftover,
    Mode,
)


class BrokerParameters(Parameters):
    """What is sent, over which broker."""

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
        shown_if=WITH_COUNT,
    )
    warm_up: int = parameter(
        "Warm-up",
        "Messages that each sender sends first and that are left out of throughput and latency",
        default=0,
        ge=0,
        le=1_000_000,
        group="Test",
        unit="messages",
        shown_if=WITH_COUNT,
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

    @field_validator("broker")
    @classmethod
    def _check_broker_fits_mode(cls, broker: BrokerChoice, info: ValidationInfo) -> BrokerChoice:
        if broker is BrokerChoice.EMBEDDED and info.data.get("mode", Mode.BOTH) is not Mode.BOTH:
            raise ValueError("a console that plays one end needs an external broker: set `broker` to external")
        return broker
