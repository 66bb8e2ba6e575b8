"""Carries wrapper keys between two tokens of one machine, each opened by a process of its own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from labconsole_keypool.transport import NamedWrapper


def carry(
    from_name: str,
    to_name: str,
    wrappers: Iterable[NamedWrapper],
    *,
    shares: int = 3,
    threshold: int = 2,
    home: Path | None = None,
) -> tuple[str, ...]:
    """Carry wrapper keys from one named token to another; returns the serials that were new to the second.

    Loads no module into this process, and asks nobody: the PINs lie in the keyring or in files.

    Raises:
        TokenError: a token is unknown, refuses, or its process crashed.
        TrialError: a PIN is nowhere to be had.
    """
    raise NotImplementedError
