"""The exchange between States A and B, step by step: who has sent what to whom, and what is missing next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from labconsole.security.pki.records import Item, State
from labconsole.security.pki.store import Snapshot


@dataclass(frozen=True)
class Step:
    """One step of the exchange. `item` went, or is to go, from `sender` to `receiver` (the same where none is)."""

    title: str
    """What is to be done, as in "B gives its root to A"."""
    sender: int
    receiver: int
    item: Item | None
    done: bool
    at: datetime | None
    """When it was done."""
    missing: str
    """What to do next, in one sentence; empty when it is done."""
    subject: int | None
    """Row of the certificate or request that it is about, if there is one."""


@dataclass(frozen=True)
class Direction:
    """`[client] -> tls-connect -> [server]`: all steps until a handshake proves it."""

    client: State
    server: State
    steps: tuple[Step, ...]

    @property
    def proven(self) -> datetime | None:
        """When a handshake last passed with what is used now."""
        return self.steps[-1].at

    @property
    def next(self) -> Step | None:
        """The first step that is missing."""
        return next((step for step in self.steps if not step.done), None)


@dataclass(frozen=True)
class Exchange:
    """Both directions between two States."""

    there: Direction
    back: Direction


def exchange_of(snapshot: Snapshot, a: str, b: str) -> Exchange:
    """How far A and B are with each other. Raises TrialError: there is no such State."""
    raise NotImplementedError
