"""Time of the key store per key: in, out, used and verified, next to SQLite alone with the same bytes.

    python tests/benchmarks/key_store.py [--keys 10000] [--rounds 5] [--directory DIR]

The keys are random bytes of the sizes of wrapped RSA-2048 keys. "In" hashes, links and stores them in one durable
transaction; "out" claims them in one, with its event. "SQLite alone" stores the same bytes in a table
without links, and reads them. Medians of the rounds; figures of this machine and its disk at this
moment, never a test.
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole_keypool.store.key_records import ClaimedKey, NewKey
from labconsole_keypool.store.key_store import KeyStore
from labconsole_keypool.store.verify_store import verify_store

KIND = KeyKind.RSA_2048
PRIVATE, PUBLIC = 1224, 294
BATCH = 175
REQUIRED = {"in": 0.02, "out": 0.005}


def main() -> None:
    """Print machine, versions, and one line for each step."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--keys", type=int, default=10_000, help="keys in a round (%(default)s)")
    arguments.add_argument("--rounds", type=int, default=5, help="rounds, each with a file of its own (%(default)s)")
    arguments.add_argument("--directory", type=Path, help="on the disk to be measured (default: the temporary one)")
    asked = arguments.parse_args()
    print(f"{platform.platform()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    print(f"SQLite {sqlite3.sqlite_version}, SQLAlchemy {version('sqlalchemy')}")
    if hasattr(os, "getloadavg"):
        print(f"load average of the last minute {os.getloadavg()[0]:.2f}")
    rounds: dict[str, list[tuple[float, float]]] = {}
    for _ in range(asked.rounds):
        with tempfile.TemporaryDirectory(dir=asked.directory) as directory:
            for step, figures in measure(Path(directory), asked.keys).items():
                rounds.setdefault(step, []).append(figures)
    print(f"{asked.keys:,} keys of {PRIVATE} + {PUBLIC} bytes; ms a key, median of {asked.rounds}")
    for step, figures in rounds.items():
        wall, cpu = (statistics.median(values) for values in zip(*figures, strict=True))
        required = f"   required {REQUIRED[step]:.3f}" if step in REQUIRED else ""
        print(f"{step:38} {wall:9.4f}   CPU {cpu:9.4f}{required}")


def measure(directory: Path, count: int) -> dict[str, tuple[float, float]]:
    """Wall and CPU time in ms a key, by step."""
    found: dict[str, tuple[float, float]] = {}

    def timed(step: str, work: Callable[[], object]) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        found[step] = ((time.perf_counter() - wall) * 1e3 / count, (time.process_time() - cpu) * 1e3 / count)

    with KeyStore.open(directory / "store.db") as store:
        wrapper = store.new_wrapper("benchmark", KIND, WrapMechanism.KEY_WRAP_PAD, 2 * count)
        now = time.time_ns()
        keys = [
            NewKey(KIND, os.urandom(PRIVATE), os.urandom(PUBLIC), wrapper.serial, wrapper.mechanism, now, now, 10**8)
            for _ in range(count)
        ]
        claimed: list[ClaimedKey] = []

        def claim_batches() -> None:
            while batch := store.claim(KIND, [wrapper.serial], BATCH):
                claimed.extend(batch)

        timed("in", lambda: store.add(keys))
        checkpoint(store.path)
        timed("out", lambda: claimed.extend(store.claim(KIND, [wrapper.serial], count)))
        assert len(claimed) == count
        timed("used, and erased", lambda: store.used([key.id for key in claimed], []))
        checkpoint(store.path)
        timed("in, 100 at a time", lambda: [store.add(keys[at : at + 100]) for at in range(0, count, 100)])
        checkpoint(store.path)
        claimed.clear()
        timed(f"out, {BATCH} at a time", claim_batches)
        assert len(claimed) == count
    timed("verified", lambda: verify_store(directory / "store.db"))
    measure_sqlite(directory / "plain.db", keys, timed)
    return found


def checkpoint(path: Path) -> None:
    """Empty the write-ahead log: the rows of one step must not slow the next one."""
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def measure_sqlite(path: Path, keys: list[NewKey], timed: Callable[[str, Callable[[], object]], None]) -> None:
    """The same bytes in and out, by the driver alone."""
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        for pragma in ("page_size = 8192", "journal_mode = WAL", "wal_autocheckpoint = 0", "synchronous = FULL"):
            raw.execute(f"PRAGMA {pragma}").fetchall()
        raw.execute("CREATE TABLE key (id INTEGER PRIMARY KEY, private BLOB, public BLOB) STRICT")

        def write() -> None:
            raw.execute("BEGIN IMMEDIATE")
            raw.executemany("INSERT INTO key (private, public) VALUES (?, ?)", [(k.private, k.public) for k in keys])
            raw.execute("COMMIT")

        timed("SQLite alone, in", write)
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        timed("SQLite alone, out", lambda: raw.execute("SELECT id, private, public FROM key").fetchall())


if __name__ == "__main__":
    main()
