"""Runs go from one database to another whole and unchanged, or not at all."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labconsole.output.bundle_import import import_bundle
from labconsole.output.bundle_writer import write_bundle
from labconsole.processes import this_process
from labconsole.store import edits
from labconsole.store.evidence.checking import verify
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from labconsole.store.run_store import Store
from tests.helpers.program_text import PROGRAM
from tests.labconsole.output.bundles.campaign import CAMPAIGN, CAPTURE, PLACED, counts, digests, filled
from tests.labconsole.output.conftest import HEX, NOW


def test_runs_arrive_with_everything_and_the_same_digest(original: Path, good: Path, other: Path) -> None:
    result = import_bundle(other, good)
    assert (result.imported, result.skipped) == ((1, 2, 3, 4), ())
    assert digests(other) == digests(original)
    assert counts(other) == counts(original)
    with Reader(original) as before, Reader(other) as after:
        for run_id in result.imported:
            sent, kept = before.run(run_id), after.run(run_id)
            assert replace(kept, row=sent.row) == sent
            assert kept.placement == sent.placement == (PLACED if run_id in (1, 3) else {})
            assert replace(kept.row, owner=None, metrics={}) == replace(sent.row, owner=None, metrics={})
            assert dict(kept.row.metrics) == dict(sent.row.metrics)
            assert before.evidence(run_id) == after.evidence(run_id)
            for series in sent.series:
                mine = before.samples(run_id).table(series.name, series.role)
                theirs = after.samples(run_id).table(series.name, series.role)
                for name in mine:
                    np.testing.assert_array_equal(mine[name], theirs[name])
        assert after.artefact(1, "trust.pem") == before.artefact(1, "trust.pem")
        assert after.samples(1).table("packets", "tap")["packet"].tolist() == [bytes.fromhex(text) for text in HEX]
        kept = after.attachments(1)
        assert kept.all() == before.attachments(1).all()
        assert [(file.name, file.sha256 is None) for file in kept.all()] == [
            ("capture.pcapng", False),
            ("log.txt", True),
        ]
        assert b"".join(kept.content("tap", "capture.pcapng")) == b"".join(CAPTURE)
        assert b"".join(kept.content("tap", "log.txt")) == b"Part 0 of run 1.Part 1 of run 1."


def test_a_bundle_of_version_1_arrives_with_its_digests(other: Path) -> None:
    result = import_bundle(other, Path(__file__).with_name("version-1.lcz"))
    assert result.imported == (1, 2)
    with Reader(other) as reader:
        assert all(verify(reader, run_id).ok for run_id in result.imported)
        assert {reader.run(run_id).row.definitions for run_id in result.imported} == {1}


def test_a_bundle_of_version_3_arrives_with_its_digests_and_asks_for_no_hosts(other: Path) -> None:
    result = import_bundle(other, Path(__file__).with_name("version-3.lcz"))
    assert result.imported == (1, 2)
    with Reader(other) as reader:
        assert all(verify(reader, run_id).ok for run_id in result.imported)
        assert [reader.run(run_id).placement for run_id in result.imported] == [{}, {}]


def test_a_bundle_of_version_4_arrives_with_its_digests(other: Path) -> None:
    result = import_bundle(other, Path(__file__).with_name("version-4.lcz"))
    assert result.imported == (1, 2)
    with Reader(other) as reader:
        assert all(verify(reader, run_id).ok for run_id in result.imported)
        assert {metric.uncertainty for metric in reader.run(result.imported[0]).metrics} == {0.0}


def test_the_same_scenario_on_other_hosts_is_of_another_campaign(
    original: Path, good: Path, other: Path, tmp_path: Path
) -> None:
    """An equal campaign with another placement is not the campaign of the imported runs."""
    with Store.open(other) as store:
        elsewhere = tuple(replace(one, placement={}) for one in CAMPAIGN.scenarios)
        store.add_campaign(replace(CAMPAIGN, scenarios=elsewhere, order=((0, 3),)), this_process(), NOW)
    imported = import_bundle(other, good).imported
    assert counts(other)["campaign"] == 2
    with Reader(other) as reader:
        assert reader.run(imported[0]).placement == PLACED


def test_imported_runs_are_compared_with_ones_own(good: Path, other: Path) -> None:
    own = filled(other)
    result = import_bundle(other, good)
    assert not set(result.imported) & set(own)
    with Reader(other) as reader:
        rows = reader.comparable([own[0], result.imported[0]])
    assert [row.metrics["lost{reason=late}"].value for row in rows] == [5e-324, 5e-324]


def test_import_leaves_existing_runs_unchanged(good: Path, other: Path) -> None:
    first = import_bundle(other, good)
    with Store.open(other) as store:
        edits.set_note(store, first.imported[0], "mine")
    before = counts(other)
    second = import_bundle(other, good)
    assert second.imported == ()
    assert set(second.skipped) == digests(other).keys()
    assert counts(other) == before
    with Reader(other) as reader:
        assert reader.run(first.imported[0]).row.note == "mine"


def test_campaign_imported_in_parts_is_one_campaign(original: Path, other: Path, tmp_path: Path) -> None:
    with Reader(original) as reader:
        for number, chosen in enumerate(([3], [2, 1], [1, 4])):
            write_bundle(reader, chosen, tmp_path / f"{number}.lcz")
            import_bundle(other, tmp_path / f"{number}.lcz")
    assert digests(other) == digests(original)
    assert counts(other)["campaign"] == 1
    assert counts(other)["scenario"] == 2


def test_repeats_that_were_added_on_both_sides_stay_apart(good: Path, other: Path, tmp_path: Path) -> None:
    """Both operators add the same repeat to the same campaign: two runs that no one campaign can hold."""
    third = tmp_path / "third.db"
    for path in (other, third):
        import_bundle(path, good)
        with Store.open(path) as store:
            run_id = store.add_repeat(1, this_process(), NOW)
            store.run_ended(run_id, RunStatus.CANCELLED, "Cancelled.", NOW)
    with Reader(third) as reader:
        write_bundle(reader, [5], tmp_path / "5.lcz")
    assert import_bundle(other, tmp_path / "5.lcz").imported == (6,)
    assert counts(other)["campaign"] == 2
    assert digests(third).items() <= digests(other).items()


def test_progress_goes_from_nothing_to_all(original: Path, other: Path, tmp_path: Path) -> None:
    written: list[float] = []
    read: list[float] = []
    with Reader(original) as reader:
        write_bundle(reader, [1, 3], tmp_path / "runs.lcz", written.append)
    import_bundle(other, tmp_path / "runs.lcz", read.append)
    for shares in (written, read):
        assert shares == sorted(shares)
        assert 0 < shares[0] < 0.2
        assert shares[-1] == 1


def test_a_failure_in_the_middle_leaves_nothing(good: Path, other: Path) -> None:
    def stop(share: float) -> None:
        if share > 0.6:  # while it is written, after all was checked
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_bundle(other, good, stop)
    assert set(counts(other).values()) == {0}
    assert len(import_bundle(other, good).imported) == 4


_KILLED = """
import os, signal, sys
from pathlib import Path
from labconsole.output.bundle_import import import_bundle

def die(share):
    if share > 0.8:
        os.kill(os.getpid(), signal.SIGKILL)

import_bundle(Path(sys.argv[1]), Path(sys.argv[2]), die)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")
def test_a_kill_in_the_middle_leaves_nothing(good: Path, other: Path) -> None:
    killed = subprocess.run([*PROGRAM, _KILLED, str(other), str(good)], timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert set(counts(other).values()) == {0}
    assert len(import_bundle(other, good).imported) == 4
