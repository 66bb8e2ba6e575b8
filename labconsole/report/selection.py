"""Which runs an export takes, and how its progress is shared among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from labconsole.report.files import ExportError
from labconsole.report.sample_tables import Progress
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail


def ended_runs(reader: Reader, run_ids: Sequence[int]) -> list[RunDetail]:
    """These runs in full. Raises StoreError for one that is not there, ExportError for one that has not ended."""
    details = [reader.run(run_id) for run_id in run_ids]
    for detail in details:
        if not detail.row.status.final:
            raise ExportError(f"Run {detail.row.id} is still {detail.row.status}: export it when it has ended.")
    return details


def shares(details: Sequence[RunDetail], progress: Progress | None) -> Iterator[tuple[RunDetail, Progress | None]]:
    """Each run with the progress to tell its own share to, which has the weight of its stored rows."""
    weights = [sum(series.rows for series in detail.series) for detail in details]
    before = 0
    for detail, weight in zip(details, weights, strict=True):
        yield detail, None if progress is None else _share(progress, before, weight, sum(weights))
        before += weight


def _share(progress: Progress, before: int, weight: int, whole: int) -> Progress:
    def tell(done: int, total: int) -> None:
        progress(before + weight * done // total, whole)

    return tell
