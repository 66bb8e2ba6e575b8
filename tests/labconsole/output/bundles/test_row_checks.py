"""Checks of rows in a bundle: only faults of the bundle are reported as such."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from labconsole.output.bundle_format import BundleError, parsed_rows
from labconsole.output.bundle_import import import_bundle
from labconsole.store.reader import Reader
from labconsole.store.run_transfer import described_run
from tests.labconsole.output.bundles.campaign import counts


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("series", "columns", '[["a","f1","",""]]'),
        ("series", "columns", '[[[],"i8","",""]]'),
        ("series", "columns", '[["a","i8","","",true]]'),
        ("series", "columns", "[" * 100_000),
        ("note", "changed", "0001-01-01T00:00:00+05:00"),
        ("metric", "uncertainty", -0.25),
        ("metric", "uncertainty", float("nan")),
        ("metric", "uncertainty", float("inf")),
        ("metric", "uncertainty", "0.25"),
    ],
    ids=[
        "no dtype of numpy",
        "name no text",
        "more than is stored",
        "nested deeply",
        "before all time",
        "negative",
        "no number",
        "infinite",
        "text",
    ],
)
def test_a_row_that_no_run_has_is_refused(original: Path, table: str, column: str, value: Any) -> None:
    with Reader(original) as reader, reader.snapshot() as connection:
        rows = described_run(connection, 1)
    del rows["scenario"], rows["campaign"]
    assert parsed_rows(json.dumps(rows).encode()).run.uuid == rows["run"]["uuid"]
    rows[table][0][column] = value
    with pytest.raises(BundleError, match=f"damaged or foreign .{table}.0.{column}: "):
        parsed_rows(json.dumps(rows).encode())


@pytest.mark.parametrize("fault", [RuntimeError("ours"), ValueError("ours"), EOFError("ours")])
@pytest.mark.parametrize("share", [0.2, 0.7], ids=["while checked", "while written"])
def test_internal_error_is_not_reported_as_a_damaged_bundle(
    good: Path, other: Path, fault: Exception, share: float
) -> None:
    def fail(done: float) -> None:
        if done > share:
            raise fault

    with pytest.raises(type(fault), match="ours") as raised:
        import_bundle(other, good, fail)
    assert raised.value is fault
    assert not other.exists() or set(counts(other).values()) == {0}
