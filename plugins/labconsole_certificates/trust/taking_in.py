"""Takes a bundle in: who may sign it, that nothing goes back, and what it changes."""

from __future__ import annotations

from dataclasses import dataclass

from labconsole.security.pki.store import PkiStore


@dataclass(frozen=True)
class TakenIn:
    """What came of a bundle."""

    state: str
    sequence: int
    first: bool
    """Whether it was the first of that State, confirmed by the fingerprint that was typed."""
    trusted: tuple[str, ...]
    """SHA-256 (hex) of roots that are trusted since then."""
    withdrawn: tuple[str, ...]
    """SHA-256 (hex) of roots that the State no longer lists, and that are no longer trusted."""
    warning: str
    """One sentence on a stale bundle, or nothing."""

    def sentence(self) -> str:
        """All of it for the operator, in a sentence or two."""
        raise NotImplementedError


def take_in(store: PkiStore, importer: str, data: bytes, confirmed_fingerprint: str = "") -> TakenIn:
    """Take the bundle `data` in for the local State `importer`: all of it in one transaction, or nothing.

    `confirmed_fingerprint`: what was typed (groups, blanks and case do not matter), for the first bundle of a State.

    Raises:
        BadInput: it is damaged, signed by a stranger, not confirmed, goes back in sequence, is from the future, or
            says what cannot be (two certificates with one serial number, what its roots did not issue).
        TrialError: there is no such State.
    """
    raise NotImplementedError
