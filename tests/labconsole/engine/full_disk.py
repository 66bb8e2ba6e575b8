"""A process for the test of a full disk: it recovers a dead run of which much is in the log, and some in the spool.

`full_disk.py FOLDER MEGABYTES` leaves so much in the spool, and prints a line of JSON while the folder's disk is full,
and one after there is room again.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from labconsole.clock import wall_now
from labconsole.engine.recorder import Recorder, make_spool
from labconsole.engine.run_end import WorkerRun, recover
from labconsole.engine.spool import SpoolWriter
from labconsole.processes import this_process
from labconsole.store.attachments import AttachmentPiece
from labconsole.store.errors import StoreError
from labconsole.store.evidence.checking import verify
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole.store.run_store import Store

CAPTURE = ("sniffer", "capture.pcapng", "application/octet-stream")
PIECE = 1_000_000


def fill(disk: Path) -> Path:
    """Write a file until the disk has no room for another page."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return ballast


def main() -> None:
    """Leave 10 MB in the log and some in the spool, fill the disk, and recover the run, then and later."""
    disk, spooled = Path(sys.argv[1]), int(sys.argv[2])
    dead = replace(this_process(), boot_id="another")
    campaign = NewCampaign("full", "Full", "", 1, (NewScenario("s", "no.trial", {}),), ((0, 1),))
    with Store.open(disk / "runs.db") as store:
        (run_id,) = store.add_campaign(campaign, dead, datetime.now(UTC))
        store.run_started(run_id, dead, {}, (), wall_now())
        with Reader(store.path) as reader:
            run = WorkerRun(store, reader.task(run_id))
        make_spool(run.spool)
        spool = SpoolWriter(run.spool / "sniffer.spool")
        stream = spool.attach(*CAPTURE)
        for seq in range(spooled):
            spool.piece(stream, seq, os.urandom(PIECE))
        spool.close()
        logged = [AttachmentPiece("logger", "trial.log", "text/plain", seq, os.urandom(PIECE)) for seq in range(10)]
        store.append(run_id, [], [], [], logged)
        ballast = fill(disk)
        recover_and_report(run)
        ballast.unlink()
        recover_and_report(run)


def recover_and_report(run: WorkerRun) -> None:
    """Recover the run; where that is refused, mark its end as the queue does. Print the result."""
    refused = ""
    try:
        recover(run, Recorder(run.store, run.id, run.spool), RunStatus.INTERRUPTED, "Its process ended.")
    except StoreError as error:
        refused = str(error)
    room = shutil.disk_usage(run.store.path.parent).free
    if refused:
        run.store.mark_ended([run.id], RunStatus.RUNNING, RunStatus.INTERRUPTED, "No room.", wall_now())
    with Reader(run.store.path) as reader:
        kept = {kept.name: kept.size for kept in reader.attachments(run.id).all()}
        row, sound = reader.run(run.id).row, verify(reader, run.id).ok
    report = {"refused": refused, "room": room, "status": row.status, "reason": row.reason, "sound": sound}
    print(json.dumps(report | {"kept": kept, "spool": run.spool.exists()}), flush=True)


if __name__ == "__main__":
    main()
