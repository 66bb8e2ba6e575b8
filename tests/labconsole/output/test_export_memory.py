"""However long a run is, its export takes the same memory: measured in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.export import BOUND_MB, MESSAGES, fill, measured


def peak_mb(folder: Path, messages: int, kind: str, *, numbered: bool = False) -> float:
    """Peak memory of the export of a run of so many messages, in MB."""
    folder.mkdir()
    run = fill(folder / "runs.db", messages, numbered=numbered)
    return measured(folder / "runs.db", "export", str(run), f"--{kind}", str(folder / kind))[1] / 1e6


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ("csv", "parquet"))
def test_a_longer_run_takes_hardly_more_memory(kind: str, tmp_path: Path) -> None:
    """Nightly: alone finds that libraries outside Python keep memory; Python's own is judged in CI for CSV."""
    short, long = peak_mb(tmp_path / "short", 150_000, kind), peak_mb(tmp_path / "long", 600_000, kind)
    assert long < short + 25, "450,000 messages more, of 150 bytes and more each"
    assert long < BOUND_MB


@pytest.mark.nightly
@pytest.mark.parametrize("numbered", (False, True))
@pytest.mark.parametrize("kind", ("csv", "parquet"))
def test_five_million_messages_stay_under_the_bound(kind: str, numbered: bool, tmp_path: Path) -> None:
    assert peak_mb(tmp_path / "long", MESSAGES, kind, numbered=numbered) < BOUND_MB
