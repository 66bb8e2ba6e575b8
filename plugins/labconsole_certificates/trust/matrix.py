"""The State x State matrix: whose root does a State trust, until when, and why not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from labconsole.security.pki.records import State
from labconsole.security.pki.store import Snapshot


class CellStatus(StrEnum):
    """How a State stands to another one's root."""

    OWN = "own"
    TRUSTED = "trusted"
    EXPIRING = "expiring"
    """Trusted, but the root runs out within 90 days."""
    STALE = "stale"
    """Trusted, but its bundle or CRL should have been followed by a newer one."""
    NOT_YET_VALID = "not yet valid"
    EXPIRED = "expired"
    REVOKED = "revoked"
    UNTRUSTED = "untrusted"
    UNKNOWN = "unknown"
    """A State elsewhere of which no bundle tells whom it trusts."""


@dataclass(frozen=True)
class Cell:
    """How `truster` stands to `trusted`. `certificate` is the root (or pin) in question, its row's id."""

    truster: int
    trusted: int
    status: CellStatus
    until: datetime | None
    """End of validity of the root that is trusted longest."""
    last_crl: datetime | None
    """When the newest CRL of that root was issued."""
    certificate: int | None
    cause: str
    """One sentence."""


@dataclass(frozen=True)
class Matrix:
    """All cells, by (truster, trusted): ids of States."""

    states: tuple[State, ...]
    cells: dict[tuple[int, int], Cell]


def matrix(snapshot: Snapshot, at: datetime) -> Matrix:
    """Who trusts whose roots at `at` (aware, UTC), as this console knows it."""
    raise NotImplementedError


def trusted_by(snapshot: Snapshot, state: int) -> frozenset[str]:
    """SHA-256 (hex) of what `state` trusts: of a local State by its trust rows, else as its newest bundle says."""
    raise NotImplementedError
