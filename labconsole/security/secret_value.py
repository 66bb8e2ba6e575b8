"""A secret in memory, and the error of a device that refuses it: all that a role's process needs of secrets."""

from __future__ import annotations

from typing import NoReturn

from labconsole.errors import UserError


class Secret:
    """A passphrase or PIN, given by `reveal` only: not in repr, str, logs, tracebacks or pickles."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The secret itself, for the library that needs it."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret does not leave its process: hand on its SecretSource")


class SecretRefusedError(UserError):
    """A device refuses a secret, and may lock itself if it is tried again.

    `key` is that of the secret's request: no run that needs it starts before the operator has corrected it.
    """

    key = ""
