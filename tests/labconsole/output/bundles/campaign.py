"""A campaign whose runs have all that a run can have, and what a database holds of it."""

from __future__ import annotations

import hashlib
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np

from labconsole.model.metrics import Direction, Evaluation, Metric, Verdict
from labconsole.model.placement import Placement, RoleRequest
from labconsole.model.series import Event, Level
from labconsole.processes import this_process
from labconsole.store import edits
from labconsole.store.attachments import AttachmentPiece
from labconsole.store.evidence.checking import verify
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario, RunStatus, StoredFile, StoredRole
from labconsole.store.run_store import EventRecord, SampleChunk, Store
from tests.labconsole.output.conftest import MESSAGES, NOW, PACKETS_CHUNK

PLACED = Placement(roles=(RoleRequest(role="sender", host="lab-1", tag="obu"),)).stored()
CAMPAIGN = NewCampaign(
    "demo",
    "Demo ✓",
    'title = "Demo ✓"\n',
    7,
    (
        NewScenario("Test 1", "swim", {"tls": False}, {"throughput": {"min": 1.5}}, PLACED),
        NewScenario("Test 2", "swim", {}),
    ),
    ((0, 1), (1, 1), (0, 2), (1, 2)),
    ({"name": "State A"},),
)

ROLES = (
    StoredRole("receiver", "lab-2", "boot-2"),
    StoredRole("sender", "lab-1", "boot-1", (StoredFile("payload", "plan ✓.txt", 237, "ab" * 32),)),
)
CAPTURE = (random.Random(1).randbytes(70_000), bytes(50_000), b"the end")


def attached(run_id: int) -> list[AttachmentPiece]:
    """Two attachments of a run: one of three pieces, complete, and one of two that was cut."""
    whole = ("tap", "capture.pcapng", "application/x-pcapng")
    cut = ("tap", "log.txt", "text/plain")
    return [
        *(AttachmentPiece(*whole, seq, content) for seq, content in enumerate(CAPTURE)),
        AttachmentPiece(*whole, len(CAPTURE), b"", hashlib.sha256(b"".join(CAPTURE)).digest()),
        *(AttachmentPiece(*cut, seq, f"Part {seq} of run {run_id}.".encode()) for seq in range(2)),
    ]


def filled(path: Path) -> list[int]:
    """A database with the four runs of the campaign; those of Test 1 have all that a run can have."""
    with Store.open(path) as store:
        ids = store.add_campaign(CAMPAIGN, this_process(), NOW)
        for run_id in ids[::2]:
            store.run_started(run_id, this_process(), {"cpu": "i7"}, ["Closed loop."], NOW)
            for role in ("receiver", "sender"):
                for seq in range(3):
                    values = {"sequence": np.arange(100) + 100 * seq, "latency": np.arange(100) / (run_id + 1)}
                    said = Event(-5, role, Level.WARNING, "slow", "Größe\n", {"a": [1, None]})
                    store.append(
                        run_id, [SampleChunk(role, MESSAGES, seq, 100, values)], [EventRecord(role, seq, said)]
                    )
            store.append(run_id, [], roles=ROLES)
            store.append(run_id, [PACKETS_CHUNK], pieces=attached(run_id))
            store.add_artefact(run_id, "trust.pem", "application/x-pem-file", b"-----BEGIN\x00")
            metrics = (
                Metric("throughput", 1 / 3, "msg/s", Direction.HIGHER, 300),
                Metric("latency", 12.5, "ms", Direction.LOWER, 300, uncertainty=0.25),
                Metric("lost", 5e-324, "", labels={"reason": "late"}),
            )
            store.replace_evaluation(run_id, Evaluation(metrics, (Verdict("limit", "pass", "Enough.", {"min": 1}),)))
        for run_id in ids:
            store.run_ended(run_id, RunStatus.FINISHED if run_id in ids[::2] else RunStatus.FAILED, "", NOW)
        edits.set_note(store, ids[0], "first light ✓")
        edits.set_tags(store, ids[0], ["a", "b"])
    return ids


def digests(path: Path) -> dict[str, str]:
    """Digest by uuid of all runs, each verified."""
    found = {}
    with Reader(path) as reader:
        for row in reader.runs(include_trashed=True):
            verification = verify(reader, row.id)
            assert verification.ok, verification.faults
            found[row.uuid] = verification.digest_now
    return found


def counts(path: Path) -> dict[str, int]:
    with closing(sqlite3.connect(path)) as raw:
        names = [name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: raw.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}
