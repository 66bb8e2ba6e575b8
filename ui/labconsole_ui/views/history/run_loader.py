"""Reads runs for the history on its background thread, and only when something was written."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from labconsole.model.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole.store.records import RunRow
from labconsole_ui.views.history.columns import TrialColumns, trial_columns
from labconsole_ui.views.history.filter_query import searchable

YIELD_EVERY = 10
"""Number of runs after which the thread releases the interpreter, so that the window can paint."""
TEXTS_DELAY_S = 0.1
"""Delay (s) of the texts, which are not urgent: the window first paints the runs undisturbed."""


@dataclass(frozen=True)
class History:
    """The trials, and all runs with the newest first; the runs have only the metrics of `known`."""

    known: TrialColumns
    runs: tuple[RunRow, ...]


class RunLoader:
    """Keeps one connection; reads again when its data version has changed."""

    def __init__(self, reader_factory: Callable[[], Reader], plugins: Plugins) -> None:
        self._factory = reader_factory
        self._plugins = plugins
        self._reader: Reader | None = None
        self._version = -1
        self._trial_columns: TrialColumns | None = None
        self._texts: dict[int, tuple[RunRow, str]] = {}

    def read(self, *, force: bool) -> History | None:
        """Trials and runs, trashed ones as well; None if nothing was written since. Raises StoreError."""
        if self._reader is None:
            self._reader = self._factory()
        if self._trial_columns is None:
            self._trial_columns = trial_columns(self._plugins)
        version = self._reader.data_version()
        if version == self._version and not force:
            return None
        names = [kind.name for kind in self._trial_columns.metrics]
        history = History(self._trial_columns, tuple(self._reader.runs(include_trashed=True, metrics=names)))
        self._version = version
        return history

    def texts(self, history: History) -> dict[int, str]:
        """Each run's `filter_query.searchable` text by id; those of runs that have not changed are kept.

        The metrics are read here as well: the store's rows decode them when they are first asked for.
        """
        names = [kind.name for kind in history.known.metrics]
        time.sleep(TEXTS_DELAY_S)
        before, self._texts = self._texts, {}
        for number, run in enumerate(history.runs):
            known = before.get(run.id)
            self._texts[run.id] = known if known is not None and known[0] == run else (run, searchable(run))
            for name in names:
                run.metrics.get(name)
            if number % YIELD_EVERY == 0:
                time.sleep(0.0005)
        return {run_id: text for run_id, (_, text) in self._texts.items()}

    def close(self) -> None:
        """Release the connection."""
        if self._reader is not None:
            self._reader.close()
