"""Samples as Parquet: what CSV holds, with types and units."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labconsole.output import parquet
from labconsole.output.csv_export import export_run
from labconsole.output.export_file import ExportError
from labconsole.output.parquet import export_parquet
from labconsole.store.reader import Reader
from labconsole.store.run_store import SampleChunk, Store
from tests.labconsole.output.conftest import HEX, MESSAGES, PACKETS_CHUNK

pq = pytest.importorskip("pyarrow.parquet")


def test_samples_keep_types_units_roles_and_exact_numbers(reader: Reader, runs: list[int], tmp_path: Path) -> None:
    (path,) = export_parquet(reader, [runs[0]], tmp_path / "new")
    table = pq.read_table(path)
    assert [(field.name, str(field.type)) for field in table.schema][1:] == [
        ("sequence", "uint32"),
        ("latency", "double"),
    ]
    assert table.schema.field("latency").metadata == {b"unit": b"ns"}
    about = table.schema.metadata
    assert about[b"labconsole.run"].decode() == reader.run(runs[0]).row.uuid
    assert (about[b"labconsole.series"], about[b"labconsole.origin"]) == (b"Messages", b"measured")
    assert table["role"].to_pylist() == ["receiver"] * 3 + ["sender"] * 3
    assert table["latency"].to_pylist()[:2] == [-1.5, 0.1]
    assert np.isnan(table["latency"][2].as_py())


def test_row_groups_hold_the_rows_of_csv(
    store: Store, reader: Reader, runs: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 1_000)
    random = np.random.default_rng(1)
    chunks = [
        SampleChunk(role, MESSAGES, seq, 700, {"sequence": np.arange(700), "latency": random.random(700)})
        for role in ("a", "b")
        for seq in range(3)
    ]
    store.append(runs[1], chunks)
    progressed: list[tuple[int, int]] = []
    (path,) = export_parquet(reader, [runs[1]], tmp_path, progress=lambda done, total: progressed.append((done, total)))
    file = pq.ParquetFile(path)
    assert [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)] == [1_400] * 3
    with export_run(reader, runs[1], tmp_path)[-1].open(encoding="utf-8", newline="") as csv_file:
        rows = list(csv.reader(csv_file))[1:]
    columns = file.read().to_pydict().values()
    assert [[str(cell) for cell in row] for row in zip(*columns, strict=True)] == rows
    assert progressed == [(1_400, 4_200), (2_800, 4_200), (4_200, 4_200)]


def test_several_runs_have_a_folder_each(store: Store, reader: Reader, runs: list[int], tmp_path: Path) -> None:
    values = {"sequence": np.arange(2), "latency": np.zeros(2)}
    store.append(runs[1], [SampleChunk("sender", MESSAGES, 0, 2, values)])
    files = export_parquet(reader, runs, tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in files] == [
        f"run-{run}/samples-messages.parquet" for run in runs
    ]


def test_runs_without_samples_are_refused(reader: Reader, runs: list[int], tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no samples were recorded"):
        export_parquet(reader, [runs[1]], tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_without_pyarrow_the_extra_is_named(
    reader: Reader, runs: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ExportError, match="install the console with its extra `parquet`"):
        export_parquet(reader, runs, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_damaged_samples_leave_the_old_file(store: Store, reader: Reader, runs: list[int], tmp_path: Path) -> None:
    (path,) = export_parquet(reader, [runs[0]], tmp_path / "out")
    before = path.read_bytes()
    with store.writer.transaction() as connection:
        connection.exec_driver_sql("UPDATE chunk SET sha256 = zeroblob(32)")
    with pytest.raises(Exception, match="damaged"):
        export_parquet(reader, [runs[0]], tmp_path / "out")
    assert path.read_bytes() == before
    assert list((tmp_path / "out").iterdir()) == [path]


def test_bytes_are_binary_in_groups_of_some_megabytes(
    store: Store, reader: Reader, runs: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "GROUP_BYTES", 5)
    store.append(runs[1], [replace(PACKETS_CHUNK, seq=seq) for seq in range(3)])
    (path,) = export_parquet(reader, [runs[1]], tmp_path)
    file = pq.ParquetFile(path)
    table = file.read()
    assert str(table.schema.field("packet").type) == "binary"
    assert [value.hex() for value in table["packet"].to_pylist()] == HEX * 3
    assert [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)] == [3, 3, 3]
