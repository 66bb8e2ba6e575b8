"""The key store: wrapped key pairs in a file, each given out at most once, also when processes are killed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from labconsole.security.token.terms import KeyKind, WrapMechanism
from labconsole_keypool.key_records import ClaimedKey, Counts, Head, NewKey, SignatureRow, WrapperKey


def store_path(name: str, home: Path | None = None) -> Path:
    """Where the key store `name` lies: `<data dir>/key-stores/<name>.db`. Raises StoreError: no name for a file."""
    raise NotImplementedError


class KeyStore:
    """A key store opened for writing; threads may share it. Every method raises StoreError, with nothing written."""

    @classmethod
    def open(cls, path: Path, *, run: str = "") -> Self:
        """Open the store, made where needed, as a claimant of its own for the run `run` (its uuid).

        Keys that processes had claimed which are dead now become invalid.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Release the store. What this opening had claimed and not used becomes invalid. A second call does nothing."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, keys: Sequence[NewKey]) -> None:
        """Store key pairs, all or none, safe from a power cut. Their wrapper keys are rows already, and have room."""
        raise NotImplementedError

    def claim(self, kind: KeyKind, wrappers: Sequence[str], count: int) -> list[ClaimedKey]:
        """Take up to `count` of the oldest new keys under these wrapper keys (serials); nobody else ever gets them."""
        raise NotImplementedError

    def used(self, ids: Sequence[int], signatures: Sequence[SignatureRow]) -> None:
        """Claimed keys are used: their wrapped private keys are erased, the signatures stored."""
        raise NotImplementedError

    def invalid(self, ids: Sequence[int], reason: str) -> None:
        """Claimed keys will not be used: their wrapped private keys are erased."""
        raise NotImplementedError

    def purge(self, kind: KeyKind | None = None) -> int:
        """Make all new keys (of one kind) invalid and erase their wrapped private keys; returns how many there were."""
        raise NotImplementedError

    def new_wrapper(self, token_serial: str, kind: KeyKind, mechanism: WrapMechanism, limit_keys: int) -> WrapperKey:
        """A new wrapper key's row; its serial is the label to be given to the key in the token, made after this."""
        raise NotImplementedError

    def wrapper_for(self, token_serial: str, kind: KeyKind) -> WrapperKey | None:
        """A wrapper key of the token with room, for this opening alone until it closes; None if there is none.

        With `pairs` 0 it may not be in the token yet: its maker was killed before.
        """
        raise NotImplementedError

    def spent_wrappers(self, token_serial: str) -> list[WrapperKey]:
        """Wrapper keys that are full and whose pairs are all used or invalid: to be destroyed in the token.

        With them goes what copies of the file may still hold of wrapped private keys.
        """
        raise NotImplementedError

    def wrapper_destroyed(self, serial: str) -> None:
        """A spent wrapper key was destroyed in its token."""
        raise NotImplementedError

    def wrappers(self) -> list[WrapperKey]:
        """All wrapper keys that were not destroyed, oldest first."""
        raise NotImplementedError

    def sample_of(self, wrapper: str) -> ClaimedKey | None:
        """A new key under this wrapper key, only to be looked at: it is not claimed, and never to be signed with."""
        raise NotImplementedError

    def counts(self, kind: KeyKind | None = None) -> Counts:
        """How many keys (of one kind) have each status."""
        raise NotImplementedError

    def head(self) -> Head:
        """How far the chain of rows goes, to be kept elsewhere as evidence."""
        raise NotImplementedError
