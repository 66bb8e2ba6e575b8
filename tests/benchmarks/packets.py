"""Measure what packets and captures cost: rows with a column of bytes, and an attachment of 200 MB.

Run it with `python tests/benchmarks/packets.py`; it works in a temporary directory and leaves nothing behind.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

from labconsole.clock import wall_now
from labconsole.engine.provenance import provenance
from labconsole.engine.recorder import Recorder, make_spool, spool_directory
from labconsole.engine.spool import SpoolAttachment, SpoolSeriesWriter, SpoolWriter
from labconsole.model.series import BYTES, Column, Series
from labconsole.processes import this_process
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario
from labconsole.store.run_store import Store

RATE = 1500
"""Packets a second of a busy station."""
SIZE = 300
PACKETS = 150_000
CAPTURE_BYTES = 200_000_000
WRITE_BYTES = 65_536
TIMES = 5
NUMBERS = (
    Column("t_ns", "i8", "ns", "Time"),
    Column("seq", "i8", "", "Sequence"),
    Column("size", "i4", "B", "Size"),
)
FIXED = Series("numbers", "Numbers", NUMBERS)
VARIABLE = Series("packets", "Packets", (*NUMBERS, Column("packet", BYTES, "", "Packet")))


def main() -> None:
    """Measure one thing after the other."""
    said = provenance(0, 0)
    print(f"{said['cpu']}, {said['cores']} cores, load {said['load_average_before'][0]}, Python {said['python']}")
    noise = random.Random(1)
    packets = [noise.randbytes(SIZE) for _ in range(PACKETS)]
    for step in (1, 15, 500):
        for series in (FIXED, VARIABLE):
            cpu_s = min(_in_folder(series, packets, step) for _ in range(TIMES))
            kept = "with" if series is VARIABLE else "without"
            print(f"role, {step} rows a call, {kept} packets of {SIZE} B: {_share(cpu_s)}")
    for title, work in (("packets", _record_packets), ("attachment of 200 MB", _record_capture)):
        with tempfile.TemporaryDirectory() as name:
            work(Path(name), packets, title)


def _share(cpu_s: float) -> str:
    return f"{PACKETS / cpu_s:,.0f} rows/s, {cpu_s / PACKETS * RATE:.2%} of a core at {RATE:,} a second"


def _in_folder(series: Series, packets: list[bytes], step: int) -> float:
    with tempfile.TemporaryDirectory() as name:
        return _write(Path(name), series, packets, step)


def _write(folder: Path, series: Series, packets: list[bytes], step: int) -> float:
    """CPU seconds of writing all packets to a spool, so many rows a call, a block every 250 ms of the rate at least."""
    spool = SpoolWriter(folder / "role.spool")
    writer = SpoolSeriesWriter(spool, "role", series)
    due, begun = RATE // 4, time.process_time()
    for first in range(0, len(packets), step):
        part = packets[first : first + step]
        rows = range(first, first + len(part))
        columns = {"packet": part} if series is VARIABLE else {}
        writer.extend(t_ns=rows, seq=rows, size=[SIZE] * len(part), **columns)
        if first >= due:
            writer.flush()
            due += RATE // 4
    writer.flush()
    cpu_s = time.process_time() - begun
    spool.close()
    return cpu_s


def _new_run(store: Store) -> tuple[int, Path]:
    campaign = NewCampaign("bench", "Benchmark", "", 1, (NewScenario("s", "k", {}),), ((0, 1),))
    [run_id] = store.add_campaign(campaign, this_process(), wall_now())
    with Reader(store.path) as reader:
        directory = spool_directory(store.path, reader.run(run_id).row.uuid)
    make_spool(directory)
    return run_id, directory


def _record_packets(folder: Path, packets: list[bytes], title: str) -> None:
    """What the recorder stores of a spool of packets, and a reader reads."""
    with Store.open(folder / "runs.db") as store:
        run_id, directory = _new_run(store)
        _write(directory, VARIABLE, packets, 15)
        begun = time.process_time()
        Recorder(store, run_id, directory).finish()
        print(f"recorder, {title}: {_share(time.process_time() - begun)}")
    begun = time.perf_counter()
    with Reader(folder / "runs.db") as reader:
        rows = len(reader.samples(run_id).table("packets", "role")["packet"])
    print(f"reader, {title}: {rows / (time.perf_counter() - begun):,.0f} rows/s")


def _record_capture(folder: Path, packets: list[bytes], title: str) -> None:
    """What role, recorder and reader need for an attachment that does not compress."""
    block = random.Random(1).randbytes(WRITE_BYTES * 64)
    with Store.open(folder / "runs.db") as store:
        run_id, directory = _new_run(store)
        spool = SpoolWriter(directory / "role.spool")
        begun = time.perf_counter()
        with SpoolAttachment(spool, "role", "capture.pcapng", "application/x-pcapng") as file:
            for first in range(0, CAPTURE_BYTES, WRITE_BYTES):
                place = first % len(block)
                file.write(block[place : place + min(WRITE_BYTES, CAPTURE_BYTES - first)])
        spool.close()
        _say("role", title, begun)
        begun = time.perf_counter()
        Recorder(store, run_id, directory).finish()
        _say("recorder", title, begun)
    begun = time.perf_counter()
    with Reader(folder / "runs.db") as reader:
        assert sum(map(len, reader.attachments(run_id).content("role", "capture.pcapng"))) == CAPTURE_BYTES
    _say("reader", title, begun)


def _say(who: str, title: str, begun: float) -> None:
    took = time.perf_counter() - begun
    print(f"{who}, {title}: {took:.1f} s, {CAPTURE_BYTES / took / 1e6:,.0f} MB/s")


if __name__ == "__main__":
    main()
