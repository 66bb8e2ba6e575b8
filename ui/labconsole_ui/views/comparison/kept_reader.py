"""A reader of the database that serves many reads in a row until it is let go."""

from __future__ import annotations

from collections.abc import Callable

from labconsole.store.reader import Reader


class KeptReader:
    """Opens the database when it is first wanted: opening it for every run again would take 10 ms a run.

    To be used by one thread at a time.
    """

    def __init__(self, factory: Callable[[], Reader]) -> None:
        self._factory = factory
        self._reader: Reader | None = None

    def opened(self) -> Reader:
        """The reader. Raises StoreError."""
        if self._reader is None:
            self._reader = self._factory()
        return self._reader

    def let_go(self) -> None:
        """Close the database; the next read opens it again."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
