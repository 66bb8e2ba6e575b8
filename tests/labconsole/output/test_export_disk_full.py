"""A disk that fills up while runs are exported, on a real small file system."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from labconsole.model.series import Event, Level
from labconsole.store.run_store import EventRecord, SampleChunk, Store
from tests.helpers.program_text import PROGRAM
from tests.helpers.small_disk import on_small_disk
from tests.labconsole.output.conftest import MESSAGES

ROWS = 4_096
EXPORTS = """
import os, sys
from labconsole.cli.main import main

database, disk = sys.argv[1:]
for kind, target in (("csv", "csv"), ("parquet", "parquet"), ("json", "one.json")):
    code = main(["export", "2", "--db", database, f"--{kind}", f"{disk}/{target}"])
    print(kind, code, *os.listdir(disk))
"""


def test_full_disk_leaves_no_partial_export(store: Store, runs: list[int], tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    chunks = [
        SampleChunk("long", MESSAGES, seq, ROWS, {"sequence": np.arange(ROWS), "latency": random.random(ROWS)})
        for seq in range(20)
    ]
    said = [
        EventRecord("long", seq, Event(seq, "long", Level.INFO, "said", f"{seq}: {'blah ' * 40}"))
        for seq in range(3_000)
    ]
    store.append(runs[1], chunks, said)
    disk = tmp_path / "disk"
    done = on_small_disk(disk, "256k", (*PROGRAM, EXPORTS, store.path, disk), os.environ)
    assert done.stdout.splitlines() == ["csv 1", "parquet 1", "json 1"], "no file, and no folder, is left"
    sentences = done.stderr.splitlines()
    assert len(sentences) == 3
    for sentence, name in zip(sentences, ("events.csv", "samples-messages.parquet", "one.json"), strict=True):
        assert f"{name} cannot be written, the disk is full: free some space or choose another one." in sentence
