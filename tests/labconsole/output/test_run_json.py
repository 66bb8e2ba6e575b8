"""A whole run as JSON."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from labconsole.output.export_file import ExportError
from labconsole.output.run_json import export_json, run_as_json
from labconsole.store.attachments import AttachmentPiece
from labconsole.store.reader import Reader
from labconsole.store.run_store import Store
from tests.labconsole.output.conftest import PARAMETERS, PLACED


def test_a_run_has_everything_but_its_samples(reader: Reader, runs: list[int], tmp_path: Path) -> None:
    (path,) = export_json(reader, [runs[0]], tmp_path / "new" / "one.json")
    run = json.loads(path.read_text(encoding="utf-8"))
    assert run == json.loads(json.dumps(run_as_json(reader, runs[0])))
    assert (run["format"], run["uuid"], run["status"]) == (1, reader.run(runs[0]).row.uuid, "finished")
    assert (run["parameters"], run["placement"]) == (PARAMETERS, PLACED)
    assert (run["started"], run["ended"]) == ("2026-11-20T12:00:00.000000Z",) * 2
    assert run["metrics"]["throughput"] == {
        "value": 0.1 + 0.2,
        "unit": "msg/s",
        "direction": "higher",
        "origin": "measured",
        "samples": 6,
        "not_judged": "",
    }
    (lost,) = run["labelled_metrics"]
    assert (lost["name"], lost["labels"], lost["value"]) == ("lost", {"reason": "expired", "by": "b"}, 3)
    assert lost["origin"] == "simulated"
    (event,) = run["events"]
    assert (event["time"], event["t_ns"], event["data"]) == ("2026-11-20T12:00:00.000001Z", 1_500, {"a": 1})
    assert [(series["role"], series["rows"]) for series in run["series"]] == [("receiver", 3), ("sender", 3)]
    assert run["series"][0]["columns"][1] == {"name": "latency", "dtype": "f8", "unit": "ns"}
    evidence = reader.evidence(runs[0])
    assert evidence is not None and run["evidence"]["digest"] == evidence.digest
    assert run["artefacts"] == []


def test_attachments_are_listed_as_complete_or_cut(store: Store, reader: Reader, runs: list[int]) -> None:
    pieces = [AttachmentPiece("tap", name, "x/y", 0, b"abc") for name in ("a.bin", "b.bin")]
    whole = sha256(b"abc")
    store.append(runs[0], [], pieces=[*pieces, AttachmentPiece("tap", "a.bin", "x/y", 1, b"", whole.digest())])
    about = {"role": "tap", "media_type": "x/y", "size": 3}
    assert run_as_json(reader, runs[0])["attachments"] == [
        {**about, "name": "a.bin", "complete": True, "sha256": whole.hexdigest()},
        {**about, "name": "b.bin", "complete": False, "sha256": None},
    ]


def test_several_runs_need_a_directory(reader: Reader, runs: list[int], tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="can hold one run, not 2"):
        export_json(reader, runs, tmp_path / "both.json")
    files = export_json(reader, runs, tmp_path / "both")
    assert [path.name for path in files] == [f"run-{run}.json" for run in runs]
    assert [json.loads(path.read_text())["run"] for path in files] == runs


def test_the_schema_names_every_key(reader: Reader, runs: list[int]) -> None:
    from labconsole.output import run_json

    assert run_json.__doc__ is not None
    for key in set(run_as_json(reader, runs[0])) - {"format"}:
        assert f"`{key}`" in run_json.__doc__, key
