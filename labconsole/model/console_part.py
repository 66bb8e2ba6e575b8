"""The part of one console in a trial of two: what it plays, opens and connects to, and what it sets for itself."""

from __future__ import annotations

from dataclasses import dataclass

TRIAL_ID = "trial_id"
"""The parameter with the id that both consoles of a trial have alike; a trial with a `counterpart` has it."""


@dataclass(frozen=True)
class ConsolePart:
    """The part of a console in a trial of two consoles, for the person who agrees to it."""

    role: str
    """What it plays, in a word: `sender`."""
    effects: tuple[str, ...]
    """What it opens, connects to, sends and discards, one sentence each."""
    own: frozenset[str]
    """Parameters that each console sets for itself, as identities, files and its way to the broker."""
