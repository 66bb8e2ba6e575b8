"""A bundle is written whole, of runs that ended and are as they were sealed, or not at all."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from labconsole.output.bundle_writer import write_bundle
from labconsole.output.export_file import ExportError
from labconsole.processes import this_process
from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.run_store import Store
from tests.labconsole.output.bundles.campaign import CAMPAIGN
from tests.labconsole.output.conftest import NOW


def test_bundle_is_complete_or_absent(original: Path, tmp_path: Path) -> None:
    target = tmp_path / "runs.lcz"

    def stop(share: float) -> None:
        if share > 0.5:
            raise InterruptedError("enough")

    with Reader(original) as reader:
        with pytest.raises(ExportError):
            write_bundle(reader, [1, 3], target, stop)
        assert list(tmp_path.glob("*.lcz*")) == []
        with pytest.raises(StoreError, match="There is no run 9"):
            write_bundle(reader, [1, 9], target)
        with pytest.raises(ExportError, match="cannot be written"):
            write_bundle(reader, [1], original / "runs.lcz")
    assert not target.exists()


def test_live_run_is_not_bundled(tmp_path: Path) -> None:
    with Store.open(tmp_path / "runs.db") as store:
        (run_id, *_) = store.add_campaign(CAMPAIGN, this_process(), NOW)
        with Reader(store.path) as reader, pytest.raises(ExportError, match=f"Run {run_id} is queued: wait"):
            write_bundle(reader, [run_id], tmp_path / "runs.lcz")
    assert not (tmp_path / "runs.lcz").exists()


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ("UPDATE metric SET value = 9", "labconsole verify 1"),
        ("UPDATE chunk SET payload = zeroblob(9) WHERE seq = 1", "damaged in chunk 1"),
        ("UPDATE artefact SET content = zeroblob(9)", "is damaged"),
    ],
)
def test_changed_run_is_not_bundled(original: Path, tmp_path: Path, damage: str, sentence: str) -> None:
    copy = tmp_path / "copy.db"
    shutil.copy(original, copy)
    with closing(sqlite3.connect(copy)) as raw, raw:
        raw.execute(damage)
    with Reader(copy) as reader, pytest.raises((StoreError, ExportError), match=sentence):
        write_bundle(reader, [1], tmp_path / "runs.lcz")
    assert not (tmp_path / "runs.lcz").exists()
