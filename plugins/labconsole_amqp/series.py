"""Series of senders and receivers (one row per message), live channels, and events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum, StrEnum

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import Column, Event, LiveChannel, Samples, Series
from labconsole_amqp.wire.sign_encrypt import Outcome


class Phase(IntEnum):
    """The part of a run in which a message was due."""

    WHOLE = 0
    """A run without phases."""
    FULL_SPEED_WARM_UP = 1
    FULL_SPEED = 2
    OPEN_LOOP_WARM_UP = 3
    OPEN_LOOP = 4


SENT = Series(
    "sent",
    "Messages sent",
    (
        Column("seq", "i8", "", "Sequence, from 0"),
        Column("intended_ns", "i8", "ns", "Intended send time", by_clock=True),
        Column("sent_ns", "i8", "ns", "Handed to the link", by_clock=True),
        Column("stamp_ms", "i8", "ms", "sent_time in the message, since the Unix epoch", since_epoch=True),
        Column("size", "i4", "B", "Encoded size"),
        Column("sign_ns", "i8", "ns", "Time to sign"),
        Column("encrypt_ns", "i8", "ns", "Time to encrypt"),
        Column("phase", "u1", "", "Phase in which it was due: 1, 2 full speed, 3, 4 open loop; 1, 3 warm-up; 0 none"),
    ),
)

ACKNOWLEDGED = Series(
    "acknowledged",
    "Acknowledgements, in the order of sending",
    (Column("acknowledged_ns", "i8", "ns", "Acknowledged by the broker", by_clock=True),),
)

RECEIVED = Series(
    "received",
    "Messages received",
    (
        Column("number", "i8", "", "Message id, -1 without one"),
        Column("received_ns", "i8", "ns", "Read out of the link", by_clock=True),
        Column(
            "stamp_ms", "i8", "ms", "sent_time in the message, since the Unix epoch; -1 if unreadable", since_epoch=True
        ),
        Column("size", "i4", "B", "Encoded size"),
        Column("verify_ns", "i8", "ns", "Time to verify"),
        Column("decrypt_ns", "i8", "ns", "Time to decrypt"),
        Column("outcome", "u1", "", "0 is good, otherwise the place in OUTCOMES"),
    ),
)

KEY_USES = Series(
    "key_uses",
    "Keys that signed one message each",
    (
        Column("seq", "i8", "", "Sequence of the message, from 0"),
        Column("load_ns", "i8", "ns", "Time to load the wrapped key into the token"),
        Column("sign_ns", "i8", "ns", "Time to sign in the token"),
        Column("destroy_ns", "i8", "ns", "Time to destroy the key in the token"),
    ),
)

QUEUE_DEPTH = Series(
    "depth",
    "Messages in the embedded broker's queues",
    (
        Column("at_ns", "i8", "ns", "Time", by_clock=True),
        Column("queue", "u1", "", "Place of the queue among those of the run, from 0"),
        Column("messages", "i8", "msg", "Messages that no consumer has; those on their way to one are not counted"),
    ),
)


def queue_depths(
    samples: Samples, addresses: Sequence[str]
) -> Iterator[tuple[str, NDArray[np.int64], NDArray[np.int64]]]:
    """Yield each of the embedded broker's queues with the times and the numbers of `QUEUE_DEPTH`."""
    for role in samples.roles(QUEUE_DEPTH.name):
        depth = samples.table(QUEUE_DEPTH.name, role)
        queue = depth.get("queue", np.zeros(len(depth["at_ns"])))  # runs of before several queues have no such column
        for place, address in enumerate(addresses):
            yield address, depth["at_ns"][queue == place], depth["messages"][queue == place]


OUTCOMES: tuple[Outcome, ...] = tuple(Outcome)
"""Outcome by its number in the series; 0 is OK."""

SENT_CHANNEL = LiveChannel("sent", "Sent", "msg")
RECEIVED_CHANNEL = LiveChannel("received", "Received", "msg")
FAILED_CHANNEL = LiveChannel("failed", "Failed verifications", "msg")
LATENCY_CHANNEL = LiveChannel("latency", "Latency", "ns")
"""In an open loop, from the time at which each message was due, as in the stored figures; on a console that only
receives, from the stamp in the message."""
QUEUE_TIME_CHANNEL = LiveChannel("queue_time", "Time in queue at full speed (from the stamp in the message)", "ns")
"""In a closed loop."""

CONNECTED = "connected"
"""Event: a sender or receiver has connected; data: connect_ns, attach_ns, tls, cipher, container, checks."""

PREFLIGHT = "preflight"
"""Event: the preflight failed at one end, or passed at all ends (event of the worker); data: `checks`, as
`preflight.checks.Check.to_json` has them."""

GENERATING_KEYS, KEYS_GENERATED = "generating message keys", "message keys generated"
"""Events: a sender generates its pool of message keys ahead, and has done so; data of the second: keys, generate_ns and
wrap_ns (of all together)."""

LINK_LOST, RECONNECTED = "connection lost", "connected again"
"""Events: a sender or receiver has lost its connection, and restored it; data of the second: took_ns, attempts."""

IDENTITIES_CHANGED = "certificates changed"
"""Event of the worker: the certificate database has changed what roles of the run use; data: roles."""
IDENTITIES_USED, IDENTITIES_KEPT = "identities used", "identities kept"
"""Events: a role uses what the certificate database has now, or could not and keeps what it had; data of the
first: certificate (SHA-256 of its own, hex), refused (why it refuses the broker that it is connected to, or empty)."""

LINK_CALIBRATED = "link calibrated"
"""Data: `rate_up`, `rate_down` (bit/s of IP packets), `rtt_ns` of a shaped link."""
LINK_FAULT = "link fault"
WORK_DONE = "work done"
"""Event: a sender, receiver or broker has finished; data: cpu_ns since T0, messages; a sender's end_ns; a receiver's
`end` (`ReceiverEnd`)."""

SWEEP_STEP = "sweep step"
"""Event of the worker: a step of a sweep begins; data: begin_ns, first (each sender's first sequence in it), rate (of
each sender, messages per second), seconds (after its warm-up)."""

SWEEP_DONE = "sweep done"
"""Event of the worker: the search is over; data: found (rate of each sender, 0 without one)."""

OPEN_LOOP = "open loop"
"""Event of the worker: the second of two phases begins; data: begin_ns, first (each sender's first sequence in it)."""

WALL_OFFSET = "wall clock"
"""Event: data offset_ns, to add to `clock.now_ns` for Unix time on that host."""


class ReceiverEnd(StrEnum):
    """Why a receiver finished; only after `COMPLETE` and `QUIET` does a missing message count as lost."""

    COMPLETE = "complete"
    QUIET = "quiet"
    STOPPED = "stopped"


_LAST_STAMP_MS = 9_000_000_000_000
"""In ns it fits into 64 bits; stamps are not signed, so a forged one may have any value."""


def latency_from_stamp_ns(
    received_ns: NDArray[np.int64], wall_offset_ns: int, stamps_ms: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Time from the stamp in each message (1 ms steps, wall clock) until it was received, ns."""
    return received_ns + wall_offset_ns - np.clip(stamps_ms, 0, _LAST_STAMP_MS) * 1_000_000


def events_of(events: Sequence[Event], name: str, role: str) -> list[Event]:
    """The events of this name from the processes of a role."""
    return [event for event in events if event.name == name and event.source.startswith(role)]
