"""Checks a key store against its links: what was changed, removed, re-dated or inserted since it was written?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from labconsole_keypool.key_records import Head


class Fault(StrEnum):
    """What is wrong with a row."""

    CHANGED = "changed"
    """It does not fit its link: a value in it, a date as well, is not what was written."""
    REMOVED = "removed"
    INSERTED = "inserted"
    STATUS = "status"
    """It says of a key or wrapper key what no linked event says."""
    BLOB = "blob"
    """A wrapped private key is another one than was stored, is gone, or is still there though it should be erased."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong; `row` is its number in the chain, `message` a sentence for the operator."""

    fault: Fault
    row: int
    message: str


def verify_store(path: Path, known_head: Head | None = None) -> tuple[Finding, ...]:
    """Everything that is wrong, in the order of the rows; empty if all is as it was written.

    With `known_head`, kept elsewhere since, rows cut off at the end or a store rewritten as a whole are found too.
    Raises StoreError: the store cannot be read.
    """
    raise NotImplementedError
