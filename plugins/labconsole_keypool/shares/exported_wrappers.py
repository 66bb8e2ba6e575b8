"""Exported wrapper keys as a file, encrypted by a transport key that exists only as shares."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from labconsole.errors import UserError
from labconsole.security.private_files import read_private, write_private
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism

_FORMAT = "labconsole wrappers 1"


class WrapperFileError(UserError):
    """A file of carried wrapper keys is missing, damaged or in the way."""


class NamedWrapper(Protocol):
    """A wrapper key by its name in the token, as the key store's WrapperKey and the token layer's Wrapper are."""

    @property
    def serial(self) -> str:
        """Its label in the token."""

    @property
    def mechanism(self) -> WrapMechanism:
        """The mechanism that it wraps with."""


class StoredKey(Protocol):
    """A wrapped key of the store, as its ClaimedKey is."""

    @property
    def kind(self) -> KeyKind:
        """Its kind."""

    @property
    def private(self) -> bytes:
        """The private key as it was wrapped."""


@dataclass(frozen=True, slots=True)
class ExportedWrapper:
    """One wrapper key, wrapped by the transport key (RFC 3394: 40 bytes)."""

    serial: str
    mechanism: WrapMechanism
    wrapped: bytes


@dataclass(frozen=True, slots=True)
class ExportedWrappers:
    """Wrapper keys for the transfer between tokens. Holds no secret without the shares of `set_id`."""

    set_id: bytes
    key_check: bytes
    threshold: int
    """Number of shares needed."""
    token: str
    """Serial number of the token that they come from."""
    wrappers: tuple[ExportedWrapper, ...]

    def as_data(self) -> dict[str, Any]:
        """As values for JSON."""
        return {
            "format": _FORMAT,
            "set": self.set_id.hex(),
            "key_check": self.key_check.hex(),
            "threshold": self.threshold,
            "token": self.token,
            "wrappers": [
                {"serial": carried.serial, "mechanism": int(carried.mechanism), "wrapped": carried.wrapped.hex()}
                for carried in self.wrappers
            ],
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The exported keys of `as_data`. Raises WrapperFileError."""
        try:
            if data["format"] != _FORMAT:
                raise WrapperFileError(f"This is not a file of carried wrapper keys: its format is not {_FORMAT!r}.")
            return cls(
                bytes.fromhex(data["set"]),
                bytes.fromhex(data["key_check"]),
                int(data["threshold"]),
                str(data["token"]),
                tuple(
                    ExportedWrapper(
                        str(carried["serial"]), WrapMechanism(carried["mechanism"]), bytes.fromhex(carried["wrapped"])
                    )
                    for carried in data["wrappers"]
                ),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise WrapperFileError("The file of carried wrapper keys is damaged: take another copy of it.") from error


def write_wrapper_file(path: Path, carried: ExportedWrappers) -> None:
    """Write the file (0600), whole or not at all; none is ever replaced.

    Raises:
        WrapperFileError: there is one already, or it cannot be written.
    """
    try:
        path.touch(mode=0o600, exist_ok=False)
        try:
            write_private(path, json.dumps(carried.as_data(), indent=1).encode())
        except OSError:
            path.unlink(missing_ok=True)
            raise
    except FileExistsError as error:
        raise WrapperFileError(f"{path} is there already: move it away, or name another file.") from error
    except OSError as error:
        raise WrapperFileError(f"{path} cannot be written ({error.strerror}): check its directory.") from error


def read_wrapper_file(path: Path) -> ExportedWrappers:
    """Reads what `write_wrapper_file` wrote. Raises WrapperFileError; UserError: missing or open to others."""
    try:
        data = json.loads(read_private(path, "file of carried wrapper keys"))
    except ValueError as error:
        raise WrapperFileError(f"{path} is not a file of carried wrapper keys: it is not JSON.") from error
    return ExportedWrappers.from_data(data)
