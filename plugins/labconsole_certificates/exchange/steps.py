"""The steps of the exchange between States A and B, both ways."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from labconsole.security.pki.records import Item, State


class StepKind(StrEnum):
    """What is done in a step."""

    MAKE_ROOT = "make-root"
    TRUST_ROOT = "trust-root"
    MAKE_SERVER = "make-server"
    MAKE_REQUEST = "make-request"
    GIVE_REQUEST = "give-request"
    APPROVE = "approve"
    GIVE_CERTIFICATE = "give-certificate"
    PROVE = "prove"


@dataclass(frozen=True)
class Step:
    """One step of the exchange. `item` goes from `sender` to `receiver`: the same State where nothing goes."""

    kind: StepKind
    title: str
    """What is to be done, as in "B gives its root to A, which trusts it"."""
    sender: int
    receiver: int
    item: Item | None
    done: bool
    at: datetime | None
    """When it was done, if that is known."""
    missing: str
    """What to do next, in one sentence; empty when it is done."""
    subject: int | None
    """Row of the certificate that it is about (GIVE_REQUEST, APPROVE: of the request), if there is one."""


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
