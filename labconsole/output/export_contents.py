"""The tables of samples that an export holds: those that roles recorded, and those that the trial derives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from numpy.typing import NDArray
from pydantic import ValidationError

from labconsole.errors import UserError
from labconsole.model.plugin import Plugins
from labconsole.model.trial import DerivedTable
from labconsole.output.export_file import ExportError
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail, StoredSeries
from labconsole.store.samples import StoredSamples

Progress = Callable[[int, int], None]
"""Called now and then with rows written and rows in all; an exception that it raises ends the export, with no file
left."""

Part = tuple[str, Mapping[str, NDArray[Any]]]


@dataclass(frozen=True)
class SampleTable:
    """One table to write. `parts` gives its rows as (role, arrays by column name), a few thousand at a time."""

    name: str
    title: str
    origin: str
    columns: tuple[tuple[str, str, str], ...]
    """(name, dtype, unit) of each column."""
    by_role: bool
    """Whether each row has the role; derived rows have none."""
    rows: int
    parts: Callable[[], Iterator[Part]]

    @property
    def stem(self) -> str:
        """Name of its file without the ending: no series can leave the directory by its name."""
        return f"samples-{quote(self.name, safe=' ')}"


def refuse_other_samples(directory: Path, tables: Iterable[SampleTable], ending: str) -> None:
    """Refuse a directory with samples that an export of these tables would leave there. Raises ExportError."""
    names = {f"{table.stem}{ending}" for table in tables}
    others = sorted(path.name for path in directory.glob(f"samples-*{ending}") if path.name not in names)
    if others:
        raise ExportError(f"{directory} has another run's {others[0]}: choose another directory, or empty this one.")


class RowCount:
    """Counts the rows of an export as they are written, and reports them."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._done = 0
        self._report_progress = progress

    def add(self, rows: int) -> None:
        """Add so many written rows."""
        self._done += rows
        if self._report_progress is not None and self._total:
            self._report_progress(self._done, self._total)


def sample_tables(detail: RunDetail, samples: StoredSamples, plugins: Plugins | None) -> tuple[list[SampleTable], str]:
    """The tables of a run, recorded ones first, and what is left out of them, in a sentence ("" if nothing is).

    `plugins` know what the run's trial derives from its samples. Raises StoreError.
    """
    names = dict.fromkeys(series.name for series in detail.series)
    tables = [_recorded([series for series in detail.series if series.name == name], samples) for name in names]
    row = detail.row
    if plugins is None or row.kind not in plugins.kinds():
        return tables, ""
    left_out = f"What {row.kind} derives from the samples is left out"
    try:
        trial = plugins.trial(row.kind)
        parameters = trial.parameters.of_stored(row.parameters)
        return tables + [_of_trial(table) for table in trial.derived(parameters, samples, detail.events)], ""
    except UserError:
        raise
    except ValidationError as error:
        count = error.error_count()
        return tables, f"{left_out}: the run's parameters do not fit the installed version ({count} differences)."
    except Exception as error:  # noqa: BLE001 - foreign code: the recorded tables are exported nevertheless
        return tables, f"{left_out}: {type(error).__name__}: {error}."


def _recorded(of_name: list[StoredSeries], samples: StoredSamples) -> SampleTable:
    def parts() -> Iterator[Part]:
        for series in of_name:
            for part in samples.parts(series.name, series.role):
                yield series.role, part

    first = of_name[0]
    rows = sum(series.rows for series in of_name)
    return SampleTable(first.name, first.title, first.origin, first.columns, True, rows, parts)


def _of_trial(table: DerivedTable) -> SampleTable:
    def parts() -> Iterator[Part]:
        for part in table.parts():
            yield "", part

    series = table.series
    columns = tuple((column.name, column.dtype, column.unit) for column in series.columns)
    return SampleTable(series.name, series.title, series.origin, columns, False, table.rows, parts)


def ended_runs(reader: Reader, run_ids: Sequence[int]) -> list[RunDetail]:
    """These runs in full. Raises StoreError for one that is not there, ExportError for one that has not ended."""
    details = [reader.run(run_id) for run_id in run_ids]
    for detail in details:
        if not detail.row.status.final:
            raise ExportError(f"Run {detail.row.id} is still {detail.row.status}: export it when it has ended.")
    return details


def attached_rows(size: int) -> int:
    """The weight of so many bytes of an attachment in the progress: rows that take about as long to write."""
    return size // 1000


def stored_rows(detail: RunDetail) -> int:
    """How many rows of samples a run has."""
    return sum(series.rows for series in detail.series)


def shares(
    details: Sequence[RunDetail], weights: Sequence[int], progress: Progress | None
) -> Iterator[tuple[RunDetail, Progress | None]]:
    """Each run with a progress callback for its own share, weighted by these."""
    before = 0
    for detail, weight in zip(details, weights, strict=True):
        yield detail, None if progress is None else _share(progress, before, weight, sum(weights))
        before += weight


def _share(progress: Progress, before: int, weight: int, whole: int) -> Progress:
    def tell(done: int, total: int) -> None:
        progress(before + weight * done // total, whole)

    return tell
