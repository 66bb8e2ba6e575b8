"""What an action is: long work that is no trial (fill a key pool, initialise a token), in a process of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

from labconsole.trial import Parameters

if TYPE_CHECKING:
    from labconsole.security.secrets import Secret, SecretRequest


@dataclass(frozen=True)
class Confirmation:
    """What the operator must type before an action destroys something: `text`; `loss` says in one sentence what is
    destroyed."""

    text: str
    loss: str


class ActionContext(Protocol):
    """What an action has at hand, inside its own process."""

    @property
    def stop_requested(self) -> bool:
        """Whether the operator asked to cancel: end soon, and keep what was made. Cheap: may be read in a loop."""

    def progress(self, done: int, total: int) -> None:
        """Say how far the work is. Cheap: only what is newest every 100 ms goes to the operator."""

    def say(self, sentence: str) -> None:
        """Tell the operator on the way what is being done, in one sentence."""

    def secret(self, key: str) -> Secret | None:
        """The secret `key` of `Action.secrets`, if the operator was asked for it."""

    def hand_over(self, title: str, secret: Secret) -> None:
        """Show the operator a secret that exists nowhere else (a share as words): shown once, never logged or kept."""


P = TypeVar("P", bound=Parameters)


class Action(ABC, Generic[P]):
    """A kind of work: it describes itself and its parameters, and does its work in a process of its own.

    `name` is unique among all plugins (`keypool.fill`), `title` is what buttons and dialogs say. `run` and nothing
    else happens in the action's process; the rest is called in the console's, and must be quick.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    description: ClassVar[str]
    parameters: ClassVar[type[Parameters]]

    def confirmation(self, parameters: P) -> Confirmation | None:
        """What must be typed before the action runs, where it destroys something. May read files. Raises UserError."""
        return None

    def secrets(self, parameters: P) -> tuple[SecretRequest, ...]:
        """Secrets that the work may need; those without keyring entry and file are asked for before it starts.

        May read files. Raises UserError.
        """
        return ()

    @abstractmethod
    def run(self, parameters: P, context: ActionContext) -> str:
        """Do the work, and return one sentence on what came of it, also when it was cancelled.

        Raises UserError when it cannot be done: its sentence is what the operator reads.
        """
