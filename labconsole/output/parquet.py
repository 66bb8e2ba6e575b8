"""The samples of runs as Parquet files, one for each series: typed columns with their units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labconsole.model.plugin import Plugins
from labconsole.model.series import BYTES, numpy_type
from labconsole.output.export_contents import (
    Part,
    Progress,
    RowCount,
    SampleTable,
    ended_runs,
    refuse_other_samples,
    sample_tables,
    shares,
    stored_rows,
)
from labconsole.output.export_file import ExportError, complete_file
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail

if TYPE_CHECKING:
    import pyarrow

GROUP_ROWS = 50_000
"""Rows of a row group, the piece in which a reader takes a file."""
GROUP_BYTES = 32 * 1024 * 1024
"""Bytes in columns of `BYTES` that make a row group too."""


def export_parquet(
    reader: Reader,
    run_ids: Sequence[int],
    directory: Path,
    plugins: Plugins | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Write `samples-<series>.parquet` of one run to `directory`, of several to `run-<number>` in it; return the files.

    They hold what the CSV files of that name do. A field's unit is in its metadata (`unit`), the run, the series'
    title and its origin in those of the file. The files of a run become complete together.
    Raises StoreError, and ExportError, also where pyarrow is not installed or no run has samples.
    """
    _arrow()
    details = ended_runs(reader, run_ids)
    if not any(detail.series for detail in details):
        raise ExportError("There is nothing to write as Parquet: no samples were recorded.")
    files = []
    for detail, share in shares(details, [stored_rows(detail) for detail in details], progress):
        folder = directory if len(details) == 1 else directory / f"run-{detail.row.id}"
        files += _export(reader, detail, folder, plugins, share)
    return files


def _arrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ExportError(
            "Parquet needs pyarrow: install the console with its extra `parquet`, or export CSV."
        ) from error
    return pyarrow


def _export(
    reader: Reader, detail: RunDetail, folder: Path, plugins: Plugins | None, progress: Progress | None
) -> list[Path]:
    tables, _ = sample_tables(detail, reader.samples(detail.row.id), plugins)
    count = RowCount(sum(table.rows for table in tables), progress)
    refuse_other_samples(folder, tables, ".parquet")
    files = []
    with ExitStack() as together:
        for table in tables:
            files.append(folder / f"{table.stem}.parquet")
            _fill(together.enter_context(complete_file(files[-1])), table, detail, count)
    return files


def _fill(path: Path, table: SampleTable, detail: RunDetail, count: RowCount) -> None:
    """Write a table of samples in row groups. Raises OSError."""
    pa = _arrow()
    schema = _schema(table, detail)
    whole = [name for name, dtype, _ in table.columns if numpy_type(dtype).kind in "iu"]
    form = {
        "compression": "zstd",
        "use_dictionary": ["role"] if table.by_role else False,
        "column_encoding": dict.fromkeys(whole, "DELTA_BINARY_PACKED"),  # times and counters, mostly: steps are small
    }
    with path.open("xb") as file, pa.parquet.ParquetWriter(file, schema, **form) as writer:
        for group in _groups(table):
            columns = {
                name: np.concatenate([part[name] for _, part in group]).astype(numpy_type(dtype), copy=False)
                for name, dtype, _ in table.columns
            }
            rows = len(next(iter(columns.values())))
            arrays = [pa.array(columns[name], _arrow_type(pa, dtype)) for name, dtype, _ in table.columns]
            if table.by_role:
                lengths = [len(part[table.columns[0][0]]) for _, part in group]
                arrays.insert(0, _roles(pa, [role for role, _ in group], lengths))
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=GROUP_ROWS * 2)
            count.add(rows)


def _schema(table: SampleTable, detail: RunDetail) -> pyarrow.Schema:
    pa = _arrow()
    fields = [
        pa.field(name, _arrow_type(pa, dtype), metadata={"unit": unit} if unit else None)
        for name, dtype, unit in table.columns
    ]
    if table.by_role:
        fields.insert(0, pa.field("role", pa.dictionary(pa.int32(), pa.string())))
    about = {"run": detail.row.uuid, "status": detail.row.status, "series": table.title, "origin": table.origin}
    return pa.schema(fields, metadata={f"labconsole.{name}": str(text) for name, text in about.items()})


def _arrow_type(pa: Any, dtype: str) -> Any:
    return pa.binary() if dtype == BYTES else pa.from_numpy_dtype(np.dtype(dtype))


def _roles(pa: Any, roles: Sequence[str], lengths: Sequence[int]) -> pyarrow.DictionaryArray:
    names = list(dict.fromkeys(roles))
    numbers = np.repeat(np.array([names.index(role) for role in roles], np.int32), lengths)
    return pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array(names, pa.string()))


def _groups(table: SampleTable) -> Iterator[list[Part]]:
    """The table's parts, as many at a time as make a row group."""
    group: list[Part] = []
    rows = held = 0
    variable = [name for name, dtype, _ in table.columns if dtype == BYTES]
    for role, part in table.parts():
        group.append((role, part))
        rows += len(part[table.columns[0][0]])
        held += sum(len(value) for name in variable for value in part[name])
        if rows >= GROUP_ROWS or held >= GROUP_BYTES:
            yield group
            group, rows, held = [], 0, 0
    if group:
        yield group
