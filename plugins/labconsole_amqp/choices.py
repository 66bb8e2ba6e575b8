"""The choices of the AMQP trial's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Mode(StrEnum):
    """Which ends this console plays."""

    BOTH = "both"
    SENDER = "sender"
    RECEIVER = "receiver"


class BrokerChoice(StrEnum):
    """Whose broker carries the messages."""

    EMBEDDED = "embedded"
    EXTERNAL = "external"
    NONE = "none"
    """None: the receiver listens, and the sender connects to it."""


class Loop(StrEnum):
    """Closed: as fast as credit allows. Open: at a given rate, independent of the broker. Both: one after the other.

    Sweep: open, in steps of other rates, up to the highest at which p99 of latency stays under a limit. Soak: open, for
    hours, to see whether anything drifts.
    """

    CLOSED = "closed"
    OPEN = "open"
    BOTH = "both"
    SWEEP = "sweep"
    SOAK = "soak"


class MessageSizes(StrEnum):
    """The size of each payload: as it is, drawn from a distribution, or that of one of the source's three payloads."""

    PAYLOAD = "payload"
    UNIFORM = "uniform"
    LOG_NORMAL = "log-normal"
    MIX = "mix"


class Shaping(StrEnum):
    """What limits the link between the clients and the broker."""

    OUTSIDE = "outside"
    BUILT_IN = "built-in"


class ShapedEnds(StrEnum):
    """Whose connections a built-in shaped link carries."""

    BOTH = "both"
    SENDER = "sender"
    RECEIVER = "receiver"


class Settlement(StrEnum):
    """Acknowledged: at least once. Pre-settled: at most once."""

    ACKNOWLEDGED = "acknowledged"
    PRE_SETTLED = "pre-settled"


class Leftover(StrEnum):
    """What to do with messages that are in the queue before the run."""

    REFUSE = "refuse"
    DRAIN = "drain"


class MessageKeys(StrEnum):
    """Which keys sign a sender's messages.

    Identity: the key of its message identity, wherever that is. Token: that key, which is in a token. Pool: another key
    for each message, which a token has generated ahead.
    """

    IDENTITY = "identity"
    TOKEN = "token"
    POOL = "pool"


class TlsVersion(StrEnum):
    """The lowest TLS version that is accepted."""

    V1_2 = "1.2"
    V1_3 = "1.3"


WITH_TLS: Mapping[str, Any] = {"test": [2, 3, 4]}
WITH_SIGNATURES: Mapping[str, Any] = {"test": [3, 4]}
WITH_ENCRYPTION: Mapping[str, Any] = {"test": 4}
WITH_COUNT: Mapping[str, Any] = {"loop": ["closed", "open"]}
WITH_WARM_UP: Mapping[str, Any] = {"loop": ["closed", "open", "soak"]}
WITHOUT_COUNT: Mapping[str, Any] = {"loop": ["both", "sweep"]}
WITH_EXTERNAL_BROKER: Mapping[str, Any] = {"broker": "external"}
WITH_EMBEDDED_BROKER: Mapping[str, Any] = {"broker": "embedded"}
WITH_OWN_PORT: Mapping[str, Any] = {"broker": ["embedded", "none"]}
"""When parameters have an effect (`shown_if`)."""

LABELS: dict[str, dict[str, str]] = {
    "mode": {"both": "Both ends", "sender": "Sender only", "receiver": "Receiver only"},
    "broker": {
        "embedded": "Embedded, comes with the console",
        "external": "External, any AMQP 1.0 broker",
        "none": "None, the sender connects to the receiver",
    },
    "loop": {
        "closed": "Closed: as fast as credit allows",
        "open": "Open: at a given rate",
        "both": "Both phases: full speed, then at a given rate",
        "sweep": "Rate sweep: the highest rate with p99 under a limit",
        "soak": "Soak: at a given rate for a given time",
    },
    "message_sizes": {
        "payload": "As the payload",
        "uniform": "Uniform between two sizes",
        "log-normal": "Log-normal around a median",
        "mix": "Mix of the three payloads",
    },
    "shaping": {"outside": "Not by the console", "built-in": "By the console"},
    "link_ends": {"both": "Senders and receivers", "sender": "Senders only", "receiver": "Receivers only"},
    "settlement": {"acknowledged": "Acknowledged: at least once", "pre-settled": "Pre-settled: at most once"},
    "leftover": {"refuse": "Refuse to start", "drain": "Drain the queue first"},
    "fields_in": {
        "application-properties": "Application properties (MY to SG)",
        "message-annotations": "Message annotations (Within Malaysia)",
    },
    "message_keys": {
        "identity": "One per trial: that of the message identity",
        "token": "One per trial, in a token",
        "pool": "One per message, from a token's pool",
    },
    "tls_minimum": {"1.2": "TLS 1.2", "1.3": "TLS 1.3"},
}
"""Choices as a form shows them, by the parameter's name; profiles and command line keep the values."""

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
