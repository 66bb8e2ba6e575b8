"""The contents of a run view, read from the store: record, and curves from samples. No widgets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labconsole.analysis import run_curves
from labconsole.analysis.run_curves import open_run, trial_errors_as_user_errors
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Trial
from labconsole.store.reader import Reader
from labconsole.store.records import Evidence, RunDetail, StoredArtefact, StoredAttachment


@dataclass(frozen=True)
class LoadedRun:
    """A run, its trial (None if not installed), T0 on the run's clock, files, seal, and baseline.

    The baseline is the pinned one of its trial, if that is another run.
    """

    detail: RunDetail
    trial: Trial[Any] | None
    begin_ns: int
    files: tuple[StoredArtefact | StoredAttachment, ...]
    evidence: Evidence | None
    baseline: int | None


def load_run(reader_factory: Callable[[], Reader], run_id: int, plugins: Plugins) -> LoadedRun:
    """Everything of a run but its samples. Raises StoreError."""
    with reader_factory() as reader:
        run = open_run(reader, run_id, plugins)
        baseline = reader.baselines().get(run.detail.row.kind)
        with trial_errors_as_user_errors(run_id):
            begin_ns = run_curves.zero_ns(run.detail.events, run.samples)
        return LoadedRun(
            run.detail,
            run.trial,
            begin_ns,
            (*reader.artefacts(run_id), *reader.attachments(run_id).all()),
            reader.evidence(run_id),
            None if baseline == run_id else baseline,
        )
