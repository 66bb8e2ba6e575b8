"""A process for the crash tests: stores chunk after chunk of one run and prints each number once it is committed."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.model.series import Column, Event, Level, Series
from labconsole.processes import this_process
from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario
from labconsole.store.run_store import EventRecord, SampleChunk, Store

SERIES = Series("noise", "Noise", (Column("a", "i8", "", "A"), Column("b", "f8", "", "B")))
ROWS = 4096


def columns(seq: int) -> dict[str, NDArray[Any]]:
    """What chunk `seq` holds: it does not compress, so that the log fills and is checkpointed soon."""
    random = np.random.default_rng(seq)
    return {"a": random.integers(0, 2**62, ROWS), "b": random.random(ROWS)}


def say(line: object) -> None:
    print(line, flush=True)


def append_until_killed(store: Store, run_id: int, count: int) -> None:
    """Append chunks with an event each."""
    for seq in range(count):
        event = Event(seq, "writer", Level.INFO, "chunk", f"chunk {seq}")
        store.append(
            run_id, [SampleChunk("writer", SERIES, seq, ROWS, columns(seq))], [EventRecord("writer", seq, event)]
        )
        say(seq)


def append_until_full(store: Store, run_id: int) -> None:
    """Append under a limit on the size of files, then lift it and append one more."""
    import resource
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    try:
        append_until_killed(store, run_id, 1000)
    except StoreError as error:
        say(f"refused: {error}")
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    with Reader(store.path) as reader:
        seq = len(list(reader.samples(run_id).parts(SERIES.name, "writer")))
    store.append(run_id, [SampleChunk("writer", SERIES, seq, ROWS, columns(seq))])
    say(f"went on: {seq}")


def main() -> None:
    """`crash_writer.py DATABASE COUNT`; a count of `full` appends until the disk is full."""
    campaign = NewCampaign("crash", "Crash", "", 1, (NewScenario("s", "noise", {}),), ((0, 1),))
    with Store.open(Path(sys.argv[1])) as store:
        (run_id,) = store.add_campaign(campaign, this_process(), datetime.now(UTC))
        say(run_id)
        if sys.argv[2] == "full":
            append_until_full(store, run_id)
        else:
            append_until_killed(store, run_id, int(sys.argv[2]))


if __name__ == "__main__":
    main()
