"""Clients next to a run's own: they send forged messages to its broker, replay messages, or cut connections."""

from __future__ import annotations

from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from labconsole.security.lab_identities import STATE_B, lab_identities
from labconsole_amqp.link.connection import Endpoint, connect
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.link.tls import TlsSettings
from labconsole_amqp.wire.envelope_layout import layout_of
from labconsole_amqp.wire.sign_encrypt import rsa_private_key
from tests.labconsole_amqp.cut_relay import CutRelay
from tests.labconsole_amqp.lab import Lab


def endpoint(lab: Lab, *, tls: bool = False) -> Endpoint:
    """The embedded broker of a run in progress; with TLS, as State B."""
    info = lab.context._roles[0].ready()
    settings = TlsSettings(lab_identities().identity(STATE_B)) if tls else None
    return Endpoint(info["host"], info["port"], tls=settings)


def state_key(name: str) -> RSAPrivateKey:
    """The key of a lab identity."""
    return rsa_private_key(lab_identities().identity(name).load_private_key(), name)


def inject(lab: Lab, messages: list[tuple[bytes, int]], *, tls: bool, queue: str = "labconsole") -> None:
    """Send messages, with the offsets of their stamps, from a connection of its own."""
    with connect(endpoint(lab, tls=tls)) as connection:
        sender = Sender(connection, queue)
        for message, stamp_offset in messages:
            while not len(sender.send_messages([message], stamp_offset)):
                sender.pump(0.1)
        assert sender.drain(5) == 0


def injecting(messages: list[tuple[bytes, int]], *, tls: bool) -> Callable[[Lab], None]:
    """Put messages (and the offsets of their stamps) into the queue from a second connection during a run."""
    return lambda lab: inject(lab, messages, tls=tls)


def intercept(lab: Lab, count: int, queue: str = "labconsole") -> list[bytes]:
    """Receive the next `count` messages of a run in the place of its receiver."""
    messages: list[bytes] = []
    with connect(endpoint(lab, tls=True)) as connection:
        receiver = Receiver(connection, queue, window=count)
        while len(messages) < count:
            messages += receiver.receive(count - len(messages), 0.1).raw.values()
        receiver.close()
    return messages


def replaying(count: int) -> Callable[[Lab], None]:
    """Take the next messages from the queue while a run is in progress, and send each of them twice."""

    def replay(lab: Lab) -> None:
        messages = intercept(lab, count) * 2
        inject(lab, [(message, layout_of(message).stamp.start) for message in messages], tls=True)

    return replay


def cutting(relay: CutRelay, times: int, each: int, *, refuse: int = 0) -> Callable[[Lab], None]:
    """Cut the relay whenever `each` more messages have been received, so many times."""

    def during(lab: Lab) -> None:
        for number in range(1, times + 1):
            lab.until("received", number * each)
            relay.cut(refuse=refuse)

    return during
