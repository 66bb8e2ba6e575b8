"""Clients next to a run's own: they send forged messages to its broker, replay messages, or cut connections."""

from __future__ import annotations

from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from labconsole.security.lab_identities import STATE_B, lab_identities
from labconsole_amqp.link.connection import Connection, Endpoint, connect
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.link.tls import TlsSettings
from labconsole_amqp.wire.envelope_layout import layout_of
from labconsole_amqp.wire.sign_encrypt import rsa_private_key
from tests.labconsole_amqp.cut_relay import CutRelay
from tests.labconsole_amqp.lab import Lab

PACED = {"loop": "open", "rate": 1_000.0}
"""So that a run of 2,000 messages lasts until it is cut, on a busy computer too."""


def endpoint(lab: Lab, *, tls: bool = False) -> Endpoint:
    """The embedded broker of a run in progress; with TLS, as State B."""
    info = lab.context._roles[0].ready()
    settings = TlsSettings(lab_identities().identity(STATE_B)) if tls else None
    return Endpoint(info["host"], info["port"], tls=settings)


def state_key(name: str) -> RSAPrivateKey:
    """The key of a lab identity."""
    return rsa_private_key(lab_identities().identity(name).private_key, name)


def inject(lab: Lab, messages: list[tuple[bytes, int]], *, tls: bool) -> None:
    """Send messages, with the offsets of their stamps, from a connection of its own."""
    with connect(endpoint(lab, tls=tls)) as connection:
        _send(connection, "labconsole", messages)


def injecting(messages: list[tuple[bytes, int]], *, tls: bool) -> Callable[[Lab], None]:
    """Put messages (and the offsets of their stamps) into the queue from a second connection during a run."""
    return lambda lab: inject(lab, messages, tls=tls)


def resend(lab: Lab, count: int, *, times: int = 1, queue: str = "labconsole", to: str = "labconsole") -> None:
    """Take the next messages of a run from a queue, and send them to a queue so many times."""
    with connect(endpoint(lab, tls=True)) as connection:
        receiver = Receiver(connection, queue, window=count)
        messages: list[bytes] = []
        while len(messages) < count:
            messages += receiver.receive(count - len(messages), 0.1).raw.values()
        receiver.close()
        _send(connection, to, [(message, layout_of(message).stamp.start) for message in messages * times])


def replaying(count: int) -> Callable[[Lab], None]:
    """Take the next messages from the queue while a run is in progress, and send each of them twice."""
    return lambda lab: resend(lab, count, times=2)


def _send(connection: Connection, queue: str, messages: list[tuple[bytes, int]]) -> None:
    sender = Sender(connection, queue)
    for message, stamp_offset in messages:
        while not len(sender.send_messages([message], stamp_offset)):
            sender.pump(0.1)
    assert sender.drain(5) == 0


def cutting(relay: CutRelay, times: int, each: int, *, refuse: int = 0) -> Callable[[Lab], None]:
    """Cut the relay whenever `each` more messages have been received, so many times."""

    def during(lab: Lab) -> None:
        for number in range(1, times + 1):
            lab.until("received", number * each)
            relay.cut(refuse=refuse)

    return during
