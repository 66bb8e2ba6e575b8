"""What checking a key store can find (`labconsole_keypool.store.verify_store`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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


def name_of_row(table: str, number: int) -> str:
    """A row as a finding names it, such as "Wrapper key 2"."""
    return f"{table.replace('_', ' ').capitalize()} {number}"
