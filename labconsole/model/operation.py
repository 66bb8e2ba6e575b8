"""The interface of an operation: work that is not a trial (create a CA, fill a key pool), defined once.

The window's dialog, the command of the terminal and the page of the reference are made from its definition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Protocol, Self, TypeVar

from pydantic import AfterValidator

from labconsole.errors import UserError
from labconsole.model.parameters import Parameters, secret_fields

if TYPE_CHECKING:
    from labconsole.security.secrets import Secret, SecretRequest


@dataclass(frozen=True)
class Confirmation:
    """What the operator must confirm before an operation starts, by typing `text` exactly.

    `loss` is one sentence: what is destroyed, or what must have been checked.
    """

    text: str
    loss: str
    option: str = ""
    """The option of the command that confirms it in a script, if there is one (`--confirmed`)."""
    fingerprint: bool = False
    """Whether `text` is the SHA-256 (hex) of a certificate, which its owner reads out: it is never shown, and groups,
    colons and case of what is typed do not matter."""
    window_only: bool = False
    """Whether a command needs no confirmation, since it names what is lost: scripts can run it as it is."""

    @property
    def request(self) -> str:
        """The sentence that asks for the text."""
        if self.fingerprint:
            return (
                "To confirm, type the SHA-256 fingerprint that its owner reads out, by another channel than the file's."
            )
        return f"To confirm, type {self.text}."

    @property
    def without_terminal(self) -> str:
        """The error sentence where there is no terminal."""
        if self.fingerprint:
            return f"{self.loss} Give the fingerprint that its owner reads out as {self.option}."
        remedy = f"give {self.option}, or do it on a terminal" if self.option else "do it on a terminal"
        return f"{self.loss} This must be confirmed by typing {self.text}: {remedy}."

    def accepts(self, typed: str) -> bool:
        """Whether `typed` confirms it."""
        if self.fingerprint:
            from labconsole.security.x509.fingerprints import typed_matches  # imported late: it needs cryptography

            return typed_matches(self.text, typed)
        return typed == self.text


class Tone(StrEnum):
    """The meaning of a text in a result, shown as a colour; the text says the same in words."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    MUTED = "muted"


class TonedText(str):
    """A text of a result, or a cell of its tables, with a tone; otherwise it is a `str`."""

    tone: Tone

    def __new__(cls, text: str, tone: Tone) -> Self:
        """`text` in the colour of `tone`."""
        toned = super().__new__(cls, text)
        toned.tone = tone
        return toned


@dataclass(frozen=True)
class TextTable:
    """A table of a result; each row has as many cells as there are `headings`."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    narrow: bool = False
    """Whether cells have one or two characters: the terminal then centres them, with one space between columns."""


@dataclass(frozen=True)
class Result:
    """What an operation returns: `parts`, in this order, for a person, and `data`, plain JSON, for a script.

    `warnings` are what the operator should check, one sentence each. `passed` is False where the operation did its work
    and its result is negative (a certificate is refused): the terminal then exits with 1.
    """

    parts: tuple[str | TextTable, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    passed: bool = True

    @classmethod
    def of(cls, returned: Result | str) -> Result:
        """The return value of `Operation.run`, as a result."""
        return returned if isinstance(returned, Result) else Result((returned,))

    @property
    def text(self) -> str:
        """The sentences for a person, without tables."""
        return "\n".join(part for part in self.parts if isinstance(part, str))

    def to_json(self) -> dict[str, Any]:
        """The plain form of the protocol."""
        parts = [
            _text_to_json(part)
            if isinstance(part, str)
            else {
                "headings": part.headings,
                "rows": [[_text_to_json(cell) for cell in row] for row in part.rows],
                "narrow": part.narrow,
            }
            for part in self.parts
        ]
        return {"parts": parts, "data": self.data, "warnings": self.warnings, "passed": self.passed}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`."""
        parts = tuple(
            TextTable(
                tuple(part["headings"]),
                tuple(tuple(_text_from_json(cell) for cell in row) for row in part["rows"]),
                part["narrow"],
            )
            if "rows" in part
            else _text_from_json(part)
            for part in data["parts"]
        )
        return cls(parts, data["data"], tuple(data["warnings"]), data["passed"])


def _text_to_json(text: str) -> dict[str, str]:
    return {"text": text, "tone": text.tone} if isinstance(text, TonedText) else {"text": text}


def _text_from_json(data: Mapping[str, str]) -> str:
    return TonedText(data["text"], Tone(data["tone"])) if "tone" in data else data["text"]


class OperationContext(Protocol):
    """The interface of the console to an operation that runs."""

    @property
    def stop_requested(self) -> bool:
        """Whether the operator asked to cancel: end soon, and keep the results so far. Cheap: may be read in a loop."""

    @property
    def typed(self) -> str:
        """The text by which the operator confirmed the operation; it was accepted."""

    def progress(self, done: int, total: int) -> None:
        """Report the progress. Cheap: only the newest state every 100 ms is sent to the operator."""

    def say(self, sentence: str) -> None:
        """Show the operator one sentence on the current step."""

    def secret(self, key: str) -> Secret | None:
        """The secret `key` of `Operation.secrets`, if the operator was asked for it."""

    def hand_over(self, title: str, secret: Secret) -> None:
        """Show the operator a secret that exists nowhere else (a share as words): shown once, never logged or kept."""


P = TypeVar("P", bound=Parameters)

HomePath = Annotated[Path, AfterValidator(Path.expanduser)]
"""A path that may begin with `~`."""


class Operation(ABC, Generic[P]):
    """A kind of work: it describes itself and its parameters.

    `name` is unique among all plugins (`keypool.fill`), `title` is what buttons and dialogs show. Only `run` works: in
    a process of its own if the window starts it. The rest is called in the console's process, and must be quick.
    A class whose parameters hold a secret raises TypeError: they become arguments, and are recorded in audit lists.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    description: ClassVar[str]
    parameters: ClassVar[type[Parameters]]
    isolated: ClassVar[bool] = False
    """Whether the terminal, too, runs it in a process of its own: it loads a PKCS#11 module, or takes minutes."""
    runs_until_cancelled: ClassVar[bool] = False
    """Whether cancelling it is its regular end: Ctrl+C then ends its command with exit code 0."""
    writes: ClassVar[tuple[str, ...]] = ()
    """Files that it changes: `certificates`, `keys`, `tokens`, `runs`, `timing profiles`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        declared = cls.__dict__.get("parameters")
        if declared is not None and (secrets := list(secret_fields(declared))):
            raise TypeError(
                f"{cls.__qualname__}: {', '.join(secrets)} is a secret, and parameters become arguments of a command "
                "and are recorded; declare it in `Operation.secrets`"
            )

    def confirmation(self, parameters: P) -> Confirmation | None:
        """The confirmation that it needs, where it destroys something. May read files. Raises UserError."""
        return None

    def secrets(self, parameters: P) -> tuple[SecretRequest, ...]:
        """Secrets that the work may need; those without keyring entry and file are asked for before it starts.

        May read files. Raises UserError.
        """
        return ()

    @abstractmethod
    def run(self, parameters: P, context: OperationContext) -> Result | str:
        """Do the work, and return its result or one sentence, also when it was cancelled.

        Raises UserError when it cannot be done, with the sentence for the operator.
        """


def conduct(operation: Operation[P], parameters: P, context: OperationContext) -> Result:
    """Run `operation` if the typed text is that of its confirmation. Raises UserError: it is not, or as `run`."""
    confirmation = operation.confirmation(parameters)
    if confirmation is not None and not confirmation.accepts(context.typed):
        if confirmation.fingerprint:
            raise UserError(
                "Nothing was done: that is not the fingerprint. Compare all of it with what its owner reads out."
            )
        raise UserError(f"Nothing was done: to confirm, type {confirmation.text} exactly as it is written.")
    return Result.of(operation.run(parameters, context))
