"""Splits a transport key into shares of which some restore it (Shamir), and tells wrong sets before they do harm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from labconsole.trial import TrialError


class ShareError(TrialError):
    """A share is damaged, missing, double or of another set; the message says which."""


@dataclass(frozen=True, slots=True)
class Share:
    """One share of an AES-256 transport key. Its halves are secret: they show in no repr."""

    set_id: bytes
    """8 random bytes, the same for all shares of one key."""
    index: int
    """1 to `total`."""
    threshold: int
    total: int
    key_check: bytes
    """The first 3 bytes of AES-ECB of 16 zero bytes under the transport key."""
    halves: tuple[bytes, bytes] = field(repr=False)
    """Shares of the key's first and second 16 bytes."""

    def to_bytes(self) -> bytes:
        """51 bytes: version, set, index, threshold, total, key check, halves, then 4 bytes of SHA-256 over all."""
        raise NotImplementedError

    @classmethod
    def from_bytes(cls, data: bytes) -> Share:
        """What `to_bytes` gave. Raises ShareError: it has another length or version, or was changed."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a collection of shares is."""

    present: int
    threshold: int
    sentence: str
    """As in "1 of 2 present: share 1 or 3 is missing"."""

    @property
    def complete(self) -> bool:
        """Whether there are enough."""
        return self.present >= self.threshold


def split(key: bytes, threshold: int, total: int) -> tuple[Share, ...]:
    """Split a 32-byte key into `total` shares, of which `threshold` restore it (2 <= threshold <= total <= 16).

    Raises:
        ShareError: another threshold or total.
    """
    raise NotImplementedError


def progress(shares: Sequence[Share]) -> Progress:
    """How far `shares` are. Raises ShareError: one is there twice, or is of another set."""
    raise NotImplementedError


def combine(shares: Sequence[Share]) -> bytes:
    """The 32-byte key of which these are shares, checked against its key check value.

    Raises:
        ShareError: too few, one twice, of two sets, or they give another key.
    """
    raise NotImplementedError
