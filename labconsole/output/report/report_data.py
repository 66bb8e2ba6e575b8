"""The data of a report, read from the store once: the runs, their comparison, their evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from labconsole.analysis.comparison import Comparison, RunGroup, column_of_run, compare, group_repeats
from labconsole.analysis.published_figures import published_column, published_columns
from labconsole.errors import UserError
from labconsole.model.metrics import Verdict
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Trial
from labconsole.output.report.report_request import ReportRequest
from labconsole.store.evidence_check import as_sealed
from labconsole.store.reader import Reader
from labconsole.store.records import Evidence, RunDetail, RunRow


@dataclass(frozen=True)
class ReportData:
    """`rows` have all metrics, labelled ones too (`Reader.comparable`); `details` are of the same runs, in their order.

    The columns of `measured` are the groups of repeats, and behind them the baseline where that is a published column;
    `with_published` has all published ones after them, and is the same where there are none. `trial` is that of the
    first run, None where it is not installed here. `changed` are the runs that changed since they were sealed.
    """

    rows: tuple[RunRow, ...]
    details: tuple[RunDetail, ...]
    evidence: Mapping[int, Evidence | None]
    changed: tuple[int, ...]
    trial: Trial[Any] | None
    measured: Comparison
    with_published: Comparison

    @property
    def groups(self) -> tuple[RunGroup, ...]:
        """The measured columns."""
        return tuple(column for column in self.measured.columns if isinstance(column, RunGroup))

    @property
    def verdicts(self) -> Mapping[int, tuple[Verdict, ...]]:
        """The verdicts of each run, by its id."""
        return {detail.row.id: detail.verdicts for detail in self.details}

    def detail(self, run_id: int) -> RunDetail:
        """The detail of one of the runs."""
        return next(detail for detail in self.details if detail.row.id == run_id)


def read_report_data(reader: Reader, plugins: Plugins, request: ReportRequest) -> ReportData:
    """Read what the report needs. Raises StoreError and UserError as `build_report`."""
    if not request.run_ids:
        raise UserError("There is no run to report on: name one run or several.")
    rows = reader.comparable(tuple(dict.fromkeys(request.run_ids)))
    for row in rows:
        if not row.status.final:
            raise UserError(f"Run {row.id} is still {row.status.value}: create the report once it has ended.")
    groups = group_repeats(rows)
    named = [column for name in request.published for column in published_columns(plugins, name)]
    asked = request.baseline
    against = (published_column(plugins, asked),) if isinstance(asked, str) else ()
    published = {column.name: column for column in (*against, *named)}.values()
    baseline = len(groups) if isinstance(asked, str) else _baseline(groups, asked)
    kind = rows[0].kind
    trial = plugins.trial(kind) if kind in plugins.kinds() else None
    details = tuple(reader.run(row.id) for row in rows)
    verdicts = {detail.row.id: detail.verdicts for detail in details}
    measured = compare((*groups, *against), trial, baseline=baseline, verdicts=verdicts)
    return ReportData(
        tuple(rows),
        details,
        {row.id: reader.evidence(row.id) for row in rows},
        tuple(row.id for row in rows if not as_sealed(reader, row.id)),
        trial,
        measured,
        compare([*groups, *published], trial, baseline=baseline, verdicts=verdicts) if published else measured,
    )


def _baseline(groups: tuple[RunGroup, ...], run_id: int | None) -> int:
    if run_id is None:
        return 0
    try:
        return column_of_run(groups, run_id)
    except ValueError as error:
        raise UserError(f"The baseline, run {run_id}, is none of the runs of the report: name one of them.") from error
