"""A look into a key store while others write it: counts, wrapper keys, the head of its chain."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from labconsole.security.token.terms import KeyKind
from labconsole_keypool.key_records import ClaimedKey, Counts, Head, WrapperKey


class KeyReader:
    """A read-only connection to a key store; threads may share it. Every method raises StoreError."""

    def __init__(self, path: Path) -> None:
        """Open the store. Raises StoreError: there is none, or it is another file."""
        raise NotImplementedError

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
