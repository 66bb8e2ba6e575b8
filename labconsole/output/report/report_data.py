"""The data of a report, read from the store once: the runs, their comparison, their evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from labconsole.analysis.comparison import Comparison, RunGroup, column_of_run, compare, group_repeats
from labconsole.analysis.published_figures import published_column, published_columns
from labconsole.errors import UserError
from labconsole.model.metrics import Verdict
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Trial
from labconsole.output.report.report_request import ReportRequest
from labconsole.store.evidence.checking import as_sealed
from labconsole.store.reader import Reader
from labconsole.store.records import Evidence, RunDetail, RunRow


@dataclass(frozen=True)
class RunData:
    """The runs of a report.

    `rows` have all metrics, labelled ones too (`Reader.comparable`), `groups` are their repeats; `details` are of the
    same runs, in their order. `changed` are the runs that changed since they were sealed.
    """

    rows: tuple[RunRow, ...]
    groups: tuple[RunGroup, ...]
    details: tuple[RunDetail, ...]
    evidence: Mapping[int, Evidence | None]
    changed: tuple[int, ...]

    @property
    def verdicts(self) -> Mapping[int, tuple[Verdict, ...]]:
        """The verdicts of each run, by its id."""
        return {detail.row.id: detail.verdicts for detail in self.details}

    def detail(self, run_id: int) -> RunDetail:
        """The detail of one of the runs."""
        return next(detail for detail in self.details if detail.row.id == run_id)


@dataclass(frozen=True)
class ReportData(RunData):
    """The data of a report on one trial.

    The columns of `measured` are the groups of repeats, and behind them the baseline where that is a published column;
    `with_published` has all published ones after them, and is the same where there are none. `trial` is that of the
    first run, None where it is not installed here.
    """

    trial: Trial[Any] | None
    measured: Comparison
    with_published: Comparison


def read_run_data(reader: Reader, run_ids: Sequence[int]) -> RunData:
    """Read the runs of a report. Raises StoreError for a run that is not there, UserError for none and for one in
    progress."""
    if not run_ids:
        raise UserError("There is no run to report on: name one run or several.")
    rows = reader.comparable(tuple(dict.fromkeys(run_ids)))
    for row in rows:
        if not row.status.final:
            raise UserError(f"Run {row.id} is still {row.status.value}: create the report once it has ended.")
    return RunData(
        tuple(rows),
        group_repeats(rows),
        tuple(reader.run(row.id) for row in rows),
        {row.id: reader.evidence(row.id) for row in rows},
        tuple(row.id for row in rows if not as_sealed(reader, row.id)),
    )


def read_report_data(reader: Reader, plugins: Plugins, request: ReportRequest) -> ReportData:
    """Read what the report needs. Raises StoreError and UserError as `build_report`."""
    runs = read_run_data(reader, request.run_ids)
    groups = runs.groups
    named = [column for name in request.published for column in published_columns(plugins, name)]
    asked = request.baseline
    against = (published_column(plugins, asked),) if isinstance(asked, str) else ()
    published = {column.name: column for column in (*against, *named)}.values()
    baseline = len(groups) if isinstance(asked, str) else _baseline(groups, asked)
    kind = runs.rows[0].kind
    trial = plugins.trial(kind) if kind in plugins.kinds() else None
    further = plugins.all_installed(group.kind for group in groups)
    compared = partial(compare, trial=trial, baseline=baseline, verdicts=runs.verdicts, further=further)
    measured = compared((*groups, *against))
    both = compared([*groups, *published]) if published else measured
    return ReportData(runs.rows, groups, runs.details, runs.evidence, runs.changed, trial, measured, both)


def _baseline(groups: tuple[RunGroup, ...], run_id: int | None) -> int:
    if run_id is None:
        return 0
    try:
        return column_of_run(groups, run_id)
    except ValueError as error:
        raise UserError(f"The baseline, run {run_id}, is none of the runs of the report: name one of them.") from error
