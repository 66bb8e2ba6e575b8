"""How a process reaches one token: the part of a token's configuration that a module's own process receives.

Such a process is started for each use of a token's key, and pydantic takes a third of its start to import.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self


class TokenAccess(Protocol):
    """The fields of `TokenConfiguration` that open a token."""

    @property
    def module(self) -> Path:
        """The PKCS#11 library of the token's maker."""

    @property
    def label(self) -> str:
        """Label of the token."""

    @property
    def serial(self) -> str:
        """Its serial number; empty where the label is enough."""

    @property
    def parameters(self) -> str:
        """NSS's parameters; empty for every other module."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables that the module reads while it starts."""

    @property
    def wrap_mechanisms(self) -> Sequence[int]:
        """Numbers of mechanisms that are preferred for wrapping."""


@dataclass(frozen=True)
class ReceivedAccess:
    """`TokenAccess` as the process that validated the configuration has sent it."""

    module: Path
    label: str
    serial: str
    parameters: str
    environment: Mapping[str, str]
    wrap_mechanisms: tuple[int, ...]

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """From a `TokenConfiguration` as JSON."""
        return cls(
            Path(fields["module"]),
            fields["label"],
            fields["serial"],
            fields["parameters"],
            fields["environment"],
            tuple(fields["wrap_mechanisms"]),
        )
