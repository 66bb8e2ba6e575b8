"""Which runs an export takes, and how its progress is shared among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from labconsole.output.export_contents import Progress
from labconsole.output.export_file import ExportError
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail


def ended_runs(reader: Reader, run_ids: Sequence[int]) -> list[RunDetail]:
    """These runs in full. Raises StoreError for one that is not there, ExportError for one that has not ended."""
    details = [reader.run(run_id) for run_id in run_ids]
    for detail in details:
        if not detail.row.status.final:
            raise ExportError(f"Run {detail.row.id} is still {detail.row.status}: export it when it has ended.")
    return details


def attached_rows(size: int) -> int:
    """How many rows take as long to write as so many bytes of an attachment, about: its weight in the progress."""
    return size // 1000


def stored_rows(detail: RunDetail) -> int:
    """How many rows of samples a run has."""
    return sum(series.rows for series in detail.series)


def shares(
    details: Sequence[RunDetail], weights: Sequence[int], progress: Progress | None
) -> Iterator[tuple[RunDetail, Progress | None]]:
    """Each run with the progress to tell its own share to, which has its weight of these."""
    before = 0
    for detail, weight in zip(details, weights, strict=True):
        yield detail, None if progress is None else _share(progress, before, weight, sum(weights))
        before += weight


def _share(progress: Progress, before: int, weight: int, whole: int) -> Progress:
    def tell(done: int, total: int) -> None:
        progress(before + weight * done // total, whole)

    return tell
