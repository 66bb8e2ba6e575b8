"""What the key store holds, as plain records: keys, wrapper keys, signatures (the source's Tables 3-1 and 3-2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any, NamedTuple, Self

from labconsole.security.token.mechanisms import KeyKind, WrapMechanism

HEAD_EVENT = "key store head"
"""Name of the event by which a run notes the `Head` of its key store as data, and the name of that as `store`."""


class KeyStatus(IntEnum):
    """Status of a stored key (Table 3-1). It goes from new to in use to used, or to invalid; never back."""

    NEW = 0
    IN_USE = 1
    """A process has claimed it; no other one ever gets it."""
    USED = 2
    INVALID = 3
    """Claimed and not used by a process that ended, or purged."""


class SignatureStatus(IntEnum):
    """Status of a signing request (Table 3-2), and dropped as well, which the source does not store."""

    NOT_USED = 0
    RECEIVED = 1
    SIGNED = 2
    FAILED = 3
    DROPPED = 4


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key pair to be stored: the wrapped private key, and the public key as SubjectPublicKeyInfo (DER).

    Start and end are Unix time in ns, as labels; the duration in ns comes from the monotonic clock.
    """

    kind: KeyKind
    private: bytes
    public: bytes
    wrapper: str
    """Serial of the wrapper key."""
    mechanism: WrapMechanism
    generate_start_ns: int
    generate_end_ns: int
    generate_duration_ns: int


class ClaimedKey(NamedTuple):
    """A key pair for its one use: the wrapped private key, the public key as SubjectPublicKeyInfo (DER).

    A tuple, since thousands are made at once: a frozen dataclass takes three times as long.
    """

    id: int
    kind: KeyKind
    private: bytes
    public: bytes
    wrapper: str
    mechanism: WrapMechanism


@dataclass(frozen=True, slots=True)
class WrapperKey:
    """An AES key that stays in its token (`token` is that one's serial number) and wraps at most `limit_keys` pairs."""

    serial: str
    token: str
    kind: KeyKind
    mechanism: WrapMechanism
    made_ns: int
    """Unix time in ns."""
    limit_keys: int
    pairs: int
    """How many it has wrapped."""

    @property
    def room(self) -> int:
        """How many pairs it may wrap yet."""
        return self.limit_keys - self.pairs


@dataclass(frozen=True, slots=True)
class SignatureRow:
    """A signing request and its answer (Table 3-2). Times are Unix time in ns; `key` is None if none was stored."""

    run: str
    request: int
    to_be_signed: bytes
    signature: bytes
    certificate: bytes
    received: int
    started: int
    got_key: int
    finished: int
    pre_generated: bool
    key: int | None
    status: SignatureStatus


@dataclass(frozen=True, slots=True)
class Counts:
    """How many keys of a store have each status."""

    new: int
    in_use: int
    used: int
    invalid: int

    @property
    def total(self) -> int:
        """All keys that were ever stored."""
        return self.new + self.in_use + self.used + self.invalid


@dataclass(frozen=True, slots=True)
class Head:
    """How far the store's chain of rows goes: number of the last row, and its link (SHA-256, hexadecimal).

    Kept outside of the store (a run's event does), it shows later that no row up to there was cut off or rewritten.
    """

    rows: int
    link: str

    def as_data(self) -> dict[str, Any]:
        """As an event's data: `{"rows": ..., "link": ...}`."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `as_data`. Raises KeyError, TypeError or ValueError for other data."""
        return cls(int(data["rows"]), str(data["link"]))
