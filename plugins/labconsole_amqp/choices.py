"""What the AMQP trial's parameters choose from."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """Which ends this console plays."""

    BOTH = "both"
    SENDER = "sender"
    RECEIVER = "receiver"


class BrokerChoice(StrEnum):
    """Whose broker carries the messages."""

    EMBEDDED = "embedded"
    EXTERNAL = "external"


class Loop(StrEnum):
    """Closed: as fast as credit allows. Open: at a given rate, whatever the broker does."""

    CLOSED = "closed"
    OPEN = "open"


class Settlement(StrEnum):
    """Acknowledged: at least once. Pre-settled: at most once."""

    ACKNOWLEDGED = "acknowledged"
    PRE_SETTLED = "pre-settled"


class Leftover(StrEnum):
    """What to do with messages that lie in the queue already."""

    REFUSE = "refuse"
    DRAIN = "drain"


class TlsVersion(StrEnum):
    """The lowest TLS version that is accepted."""

    V1_2 = "1.2"
    V1_3 = "1.3"
