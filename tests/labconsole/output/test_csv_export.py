"""Runs as CSV files that spreadsheets and programs read without harm."""

from __future__ import annotations

import csv
import tracemalloc
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import update

from labconsole.errors import UserError
from labconsole.model.parameters import Parameters
from labconsole.model.plugin import Plugin, Plugins
from labconsole.model.series import Event, Series
from labconsole.model.trial import DerivedTable, Samples
from labconsole.output.csv_export import export_metrics, export_run, export_runs
from labconsole.output.export_file import ExportError
from labconsole.output.parquet import export_parquet
from labconsole.processes import this_process
from labconsole.store import schema
from labconsole.store.attachments import AttachmentPiece
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole.store.run_store import SampleChunk, Store
from tests.labconsole.output.conftest import HEX, MESSAGES, NOW, PACKETS_CHUNK


def table(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, strict=True))


def test_a_run_becomes_these_files_and_nothing_else(reader: Reader, runs: list[int], tmp_path: Path) -> None:
    directory = tmp_path / "new" / "csv"
    files = export_run(reader, runs[0], directory)
    names = ["parameters.csv", "provenance.csv", "metrics.csv", "events.csv", "samples-messages.csv"]
    assert [file.name for file in files] == names
    assert sorted(entry.name for entry in directory.iterdir()) == sorted(names)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_directory_with_samples_of_another_kind_of_run_is_refused_untouched(
    reader: Reader, runs: list[int], tmp_path: Path, ending: str
) -> None:
    def export() -> None:
        if ending == "csv":
            export_run(reader, runs[0], tmp_path)
        else:
            pytest.importorskip("pyarrow")
            export_parquet(reader, [runs[0]], tmp_path)

    export()
    export()
    (tmp_path / f"samples-received.{ending}").write_text("kept", "utf-8")
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    with pytest.raises(ExportError) as raised:
        export()
    assert str(raised.value) == (
        f"{tmp_path} has another run's samples-received.{ending}: choose another directory, or empty this one."
    )
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_artefacts_come_with_a_list_of_their_hashes(store: Store, reader: Reader, tmp_path: Path) -> None:
    scenario = NewScenario("Test 1", "swim", {})
    [run_id] = store.add_campaign(NewCampaign("demo", "Demo", "", 1, (scenario,), ((0, 1),)), this_process(), NOW)
    store.run_started(run_id, this_process(), {}, [], NOW)
    contents = {"message.xml": b"<m/>", "sender.pem": b"-----BEGIN"}
    for name, content in contents.items():
        store.add_artefact(run_id, name, "text/plain", content)
    store.run_ended(run_id, RunStatus.FINISHED, "", NOW)
    files = export_run(reader, run_id, tmp_path / "csv")
    assert {file.name: file.read_bytes() for file in files if file.parent.name == "artefacts"} == contents
    header, *rows = table(tmp_path / "csv" / "artefacts.csv")
    assert header == ["name", "type", "size [B]", "SHA-256"]
    assert [row[3] for row in rows] == [sha256(content).hexdigest() for content in contents.values()]
    with store.writer.transaction() as connection:
        connection.execute(update(schema.artefact).values(name=schema.artefact.c.name.concat("/../../../out")))
    with pytest.raises(ExportError, match="cannot be the name of a file"):
        export_run(reader, run_id, tmp_path / "hostile")
    assert not (tmp_path / "hostile").exists()


def test_samples_carry_units_roles_and_exact_numbers(reader: Reader, runs: list[int], tmp_path: Path) -> None:
    path = export_run(reader, runs[0], tmp_path)[-1]
    header, *rows = table(path)
    assert header == ["role", "sequence", "latency [ns]"]
    assert rows[:2] == [["receiver", "0", "-1.5"], ["receiver", "1", "0.1"]]
    assert [row[0] for row in rows] == ["receiver"] * 3 + ["sender"] * 3
    assert rows[2][2] == "nan"
    assert path.read_bytes().count(b"\r\n") == 7


def test_metrics_have_a_row_per_run_and_metric(reader: Reader, runs: list[int], tmp_path: Path) -> None:
    header, *rows = table(export_metrics(reader, runs, tmp_path / "metrics.csv"))
    first = dict(zip(header, rows[0], strict=True))
    assert len(rows) == 4
    assert float(first["value"]) == 0.1 + 0.2
    assert (first["metric"], first["unit"], first["direction"], first["samples"]) == (
        "throughput",
        "msg/s",
        "higher",
        "6",
    )
    assert (first["scenario"], first["status"]) == ('Test 1, "plain"', "finished")
    assert (first["started"], first["ended"]) == ("2026-11-20T12:00:00.000000Z",) * 2
    assert rows[1][header.index("labels")] == "by=b;reason=expired"
    assert [row[header.index("origin")] for row in rows] == ["measured", "simulated"] * 2
    assert [row[0] for row in rows] == [str(runs[0])] * 2 + [str(runs[1])] * 2


def test_events_have_their_wall_time(reader: Reader, runs: list[int], tmp_path: Path) -> None:
    (_, event) = table(export_run(reader, runs[0], tmp_path)[3])
    assert event[:5] == ["2026-11-20T12:00:00.000001Z", "1500", "sender", "warning", "slow"]
    assert event[6] == '{"a":1}'


def test_texts_that_a_spreadsheet_would_run_are_marked_and_numbers_are_not(
    reader: Reader, runs: list[int], tmp_path: Path
) -> None:
    parameters, _, metrics, events, _ = (table(path) for path in export_run(reader, runs[0], tmp_path))
    assert parameters[1:] == [
        ["host", "'=cmd|' /C calc'!A0"],
        ["load.rate", "-2.5"],
        ["load.sizes", "[11,237]"],
        ["n", "-5"],
        ["port", "5671"],
        ["tls", "true"],
    ]
    assert metrics[1][2] == "'@Demo"
    assert events[1][5] == "'+49 ms\nlate; \u00fc"


def test_the_name_of_a_series_cannot_leave_the_directory(
    store: Store, reader: Reader, runs: list[int], tmp_path: Path
) -> None:
    nothing = {column.name: np.empty(0, column.dtype) for column in MESSAGES.columns}
    series = Series("../../etc/x", "X", MESSAGES.columns)
    store.append(runs[1], [SampleChunk("sender", series, 0, 0, nothing)])
    path = export_run(reader, runs[1], tmp_path / "csv")[-1]
    assert path.parent == tmp_path / "csv"
    assert path.is_file()


def test_a_file_that_cannot_be_completed_leaves_the_old_one(
    store: Store, reader: Reader, runs: list[int], tmp_path: Path
) -> None:
    directory = tmp_path / "csv"
    path = export_run(reader, runs[0], directory)[-1]
    before = path.read_bytes()
    with store.writer.transaction() as connection:
        connection.exec_driver_sql("UPDATE chunk SET sha256 = zeroblob(32)")
    with pytest.raises(Exception, match="damaged"):
        export_run(reader, runs[0], directory)
    assert path.read_bytes() == before
    assert len(list(directory.iterdir())) == 5


def test_missing_or_live_run_is_refused_before_a_file_is_written(
    store: Store, reader: Reader, runs: list[int], tmp_path: Path
) -> None:
    campaign = NewCampaign("demo", "Demo", "", 1, (NewScenario("s", "swim", {}),), ((0, 1), (0, 2)))
    queued, running = store.add_campaign(campaign, this_process(), NOW)
    store.run_started(running, this_process(), {}, [], NOW)
    for refused, reason in ((queued, "still queued"), (running, "still running"), (99, "There is no run 99")):
        with pytest.raises(UserError, match=reason):
            export_runs(reader, [runs[0], refused], tmp_path / "csv")
        with pytest.raises(UserError, match=reason):
            export_run(reader, refused, tmp_path / "csv")
    assert not (tmp_path / "csv").exists()


def test_several_runs_share_their_metrics_and_have_a_folder_each(
    reader: Reader, runs: list[int], tmp_path: Path
) -> None:
    progressed: list[tuple[int, int]] = []
    files = export_runs(reader, runs, tmp_path, progress=lambda done, total: progressed.append((done, total)))
    assert [row[0] for row in table(tmp_path / "metrics.csv")[1:]] == [str(run) for run in runs for _ in range(2)]
    assert {path.parent.name for path in files[1:]} == {f"run-{run}" for run in runs}
    assert progressed == [(3, 6), (6, 6)]


class FaultyTrial:
    """A third party's trial that cannot evaluate a run."""

    parameters = Parameters

    def derived(self, parameters: Parameters, samples: Samples, events: Sequence[Event]) -> tuple[DerivedTable, ...]:
        raise KeyError("no such role")


@pytest.mark.parametrize(
    ("parameters", "reason"), [({}, "KeyError: 'no such role'"), ({"old": 1}, "do not fit the installed version")]
)
def test_table_that_a_trial_cannot_derive_is_left_out_and_reported(
    store: Store, reader: Reader, tmp_path: Path, parameters: dict[str, int], reason: str
) -> None:
    campaign = NewCampaign("demo", "Demo", "", 1, (NewScenario("s", "faulty", parameters),), ((0, 1),))
    (run,) = store.add_campaign(campaign, this_process(), NOW)
    store.append(run, [SampleChunk("sender", MESSAGES, 0, 1, {"sequence": np.arange(1), "latency": np.zeros(1)})])
    store.run_ended(run, RunStatus.FINISHED, "", NOW)
    faulty = Plugin(name="x", title="X", description="X", trials={"faulty": f"{__name__}:FaultyTrial"})
    files = {path.name: table(path) for path in export_run(reader, run, tmp_path, Plugins((faulty,)))}
    assert len(files["samples-messages.csv"]) == 2
    (progressed,) = [row[1] for row in files["provenance.csv"] if row[0] == "left out"]
    assert progressed.startswith("What faulty derives from the samples is left out") and reason in progressed


def test_a_cancelled_export_leaves_nothing_new(reader: Reader, runs: list[int], tmp_path: Path) -> None:
    class CancelError(Exception):
        pass

    def cancel(done: int, total: int) -> None:
        if done == total:
            raise CancelError

    with pytest.raises(CancelError):
        export_run(reader, runs[0], tmp_path / "new" / "csv", progress=cancel)
    assert not (tmp_path / "new").exists()
    before = {path: path.read_bytes() for path in export_run(reader, runs[0], tmp_path)}
    with pytest.raises(CancelError):
        export_run(reader, runs[0], tmp_path, progress=cancel)
    assert {path: path.read_bytes() for path in before} == before
    assert not list(tmp_path.glob(".*"))


def test_target_that_is_not_a_directory_is_named(reader: Reader, runs: list[int], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ExportError, match="choose another directory"):
        export_run(reader, runs[0], tmp_path / "file")


def test_a_long_run_is_exported_in_flat_memory(store: Store, reader: Reader, runs: list[int], tmp_path: Path) -> None:
    rows = 4096
    random = np.random.default_rng(1)
    chunks = [
        SampleChunk("long", MESSAGES, seq, rows, {"sequence": np.arange(rows), "latency": random.random(rows)})
        for seq in range(40)
    ]
    store.append(runs[1], chunks)
    del chunks
    tracemalloc.start()
    try:
        path = export_run(reader, runs[1], tmp_path)[-1]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 3_000_000
    assert peak < 8_000_000


def test_sites_provenance_and_that_a_run_was_interrupted_go_along(store: Store, reader: Reader, tmp_path: Path) -> None:
    sites = ({"name": "State A", "remarks": "=1+1"}, {"name": "State B", "host": "10.0.0.7"})
    campaign = NewCampaign("demo", "Demo", "", 1, (NewScenario("s", "swim", {}),), ((0, 1),), sites)
    (run,) = store.add_campaign(campaign, this_process(), NOW)
    provenance = {"cpu": "i7", "packages": {"numpy": "2.0"}, "live_view_hz_later": [0.0, 8.0]}
    store.run_started(run, this_process(), provenance, ["Closed loop."], NOW)
    store.run_ended(run, RunStatus.INTERRUPTED, "=The console died.", NOW)
    files = {path.name: table(path) for path in export_run(reader, run, tmp_path)}
    assert files["sites.csv"] == [
        ["name", "remarks", "host"],
        ["State A", "'=1+1", ""],
        ["State B", "", "10.0.0.7"],
    ]
    evidence = reader.evidence(run)
    assert evidence is not None
    assert files["provenance.csv"] == [
        ["what", "value"],
        ["status", "interrupted"],
        ["reason", "'=The console died."],
        ["evidence", evidence.digest],
        ["run", reader.run(run).row.uuid],
        ["warnings", '["Closed loop."]'],
        ["cpu", "i7"],
        ["live_view_hz_later", "[0.0,8.0]"],
        ["packages.numpy", "2.0"],
    ]


def test_bytes_are_written_in_hexadecimal(store: Store, reader: Reader, runs: list[int], tmp_path: Path) -> None:
    store.append(runs[1], [PACKETS_CHUNK])
    rows = table(export_run(reader, runs[1], tmp_path)[-1])
    assert rows == [["role", "packet", "port"], *(["tap", text, port] for text, port in zip(HEX, "012", strict=True))]


def test_attachments_are_files_of_their_roles_with_a_list(
    store: Store, reader: Reader, runs: list[int], tmp_path: Path
) -> None:
    """Also those of a role whose name would lead elsewhere."""
    whole, progressed = b"x" * 2_000, list[tuple[int, int]]()
    for role in ("tap", "..", "a/../../b"):
        pieces = [AttachmentPiece(role, "a.bin", "x/y", seq, whole[seq * 1000 :][:1000]) for seq in range(2)]
        store.append(runs[0], [], pieces=pieces)
    store.append(runs[0], [], pieces=[AttachmentPiece("tap", "a.bin", "x/y", 2, b"", sha256(whole).digest())])
    directory = tmp_path / "csv"
    files = export_runs(reader, runs, directory, progress=lambda done, total: progressed.append((done, total)))
    folder = directory / f"run-{runs[0]}" / "attachments"
    places = ["%2E%2E/a.bin", "a%2F..%2F..%2Fb/a.bin", "tap/a.bin"]
    assert [path.relative_to(folder).as_posix() for path in files if path.is_relative_to(folder)] == places
    assert all((folder / place).read_bytes() == whole for place in places)
    assert table(folder.with_name("attachments.csv")) == [
        ["file", "role", "name", "type", "size [B]", "SHA-256", "state"],
        ["attachments/%2E%2E/a.bin", "..", "a.bin", "x/y", "2000", "", "cut"],
        ["attachments/a%2F..%2F..%2Fb/a.bin", "a/../../b", "a.bin", "x/y", "2000", "", "cut"],
        ["attachments/tap/a.bin", "tap", "a.bin", "x/y", "2000", sha256(whole).hexdigest(), "complete"],
    ]
    assert progressed == [(3, 12), *((done, 12) for done in range(6, 13))]


def test_an_export_that_is_cancelled_in_an_attachment_leaves_nothing(
    store: Store, reader: Reader, runs: list[int], tmp_path: Path
) -> None:
    pieces = [AttachmentPiece("tap", "a.bin", "x/y", seq, bytes(100_000)) for seq in range(10)]
    store.append(runs[0], [], pieces=pieces)

    def stop(done: int, total: int) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_run(reader, runs[0], tmp_path / "csv", progress=stop)
    assert not (tmp_path / "csv").exists()


def test_an_attachment_that_cannot_be_a_file_is_refused(
    store: Store, reader: Reader, runs: list[int], tmp_path: Path
) -> None:
    store.append(runs[0], [], pieces=[AttachmentPiece("tap", "../a.bin", "x/y", 0, b"x")])
    with pytest.raises(ExportError, match=r"attachment '\.\./a\.bin', which cannot be the name of a file"):
        export_run(reader, runs[0], tmp_path / "csv")
    assert not (tmp_path / "csv").exists()
