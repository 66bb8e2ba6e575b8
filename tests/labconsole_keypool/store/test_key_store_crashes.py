"""Killed and competing processes, a full disk: every key is new, used once or invalid, and nothing is half-written."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from labconsole_keypool.store.key_links import ids_of_text
from labconsole_keypool.store.key_records import KeyStatus
from labconsole_keypool.store.key_store import KeyStore
from labconsole_keypool.store.verify_store import verify_store
from tests.helpers.practice import alive, environment, wait_until
from tests.labconsole_keypool import key_worker
from tests.labconsole_keypool.stored_keys import new_keys, new_wrapper

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks")


class Worker:
    """A process of `key_worker` with one task."""

    def __init__(self, pid: int, output: Path) -> None:
        self.pid = pid
        self._output = output

    def kill(self) -> None:
        """Kill -9, and wait until it is gone."""
        os.kill(self.pid, signal.SIGKILL)
        assert wait_until(lambda: not alive(self.pid))

    def lines(self, word: str) -> list[str]:
        """What it has said with `word`; a line that the kill cut off does not count."""
        if not self._output.exists():
            return []
        whole = [line for line in self._output.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [line[len(word) :].strip() for line in whole if line.startswith(f"{word} ")]

    def ids(self, word: str) -> list[int]:
        """The ids that it has said with `word`."""
        return [number for text in self.lines(word) for number in ids_of_text(text, before=sys.maxsize)]


class Herd:
    """Starts workers on one store."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "lab.db"
        self._folder = folder
        self._started = 0
        self._process = subprocess.Popen(
            [sys.executable, key_worker.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(ROOT),
            start_new_session=True,
        )

    def start(self, task: str) -> Worker:
        """Start a worker."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._started += 1
        output = self._folder / f"worker-{self._started}"
        self._process.stdin.write(f"{self.store} {task} {output}\n")
        self._process.stdin.flush()
        return Worker(int(self._process.stdout.readline()), output)

    def close(self) -> None:
        """End it, and what it has started."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


@pytest.fixture
def herd(tmp_path: Path) -> Iterator[Herd]:
    herd = Herd(tmp_path)
    yield herd
    herd.close()


def statuses(path: Path) -> dict[int, int]:
    with closing(sqlite3.connect(path)) as raw:
        return dict(raw.execute("SELECT id, status FROM key_state").fetchall())


def filled(path: Path, count: int) -> None:
    with KeyStore.open(path) as store:
        store.add(new_keys(new_wrapper(store, limit_keys=count), count))


def kill_at_random_moments(herd: Herd, rounds: int, seed: int) -> None:
    """Rounds of three claiming processes and an adding one, each killed; after each the store is opened and checked."""
    moments = random.Random(seed)
    filled(herd.store, 300 * rounds)
    before = 300 * rounds
    claimed: list[int] = []
    for _ in range(rounds):
        *claimers, adder = workers = [herd.start(task) for task in ("claim", "claim", "claim", "add")]
        for worker in moments.sample(workers, len(workers)):
            time.sleep(moments.uniform(0, 0.1))
            worker.kill()
        KeyStore.open(herd.store).close()

        assert verify_store(herd.store) == ()
        now = statuses(herd.store)
        claimed += [number for worker in claimers for number in worker.ids("claimed")]
        used = {number for worker in claimers for number in worker.ids("used")}
        assert len(claimed) == len(set(claimed)), "a key was given out twice"
        assert set(now.values()) <= {KeyStatus.NEW, KeyStatus.USED, KeyStatus.INVALID}
        assert {now[number] for number in claimed} <= {KeyStatus.USED, KeyStatus.INVALID}, "a claimed key is new again"
        assert {now[number] for number in used} <= {KeyStatus.USED}, "a used key is forgotten"
        added, before = len(now) - before, len(now)
        said = key_worker.BATCH * len(adder.lines("added"))
        assert added in (said, said + key_worker.BATCH), "a batch is lost or half-written"
    assert claimed


def test_a_dozen_kills_lose_no_key_and_give_none_out_twice(herd: Herd) -> None:
    kill_at_random_moments(herd, rounds=3, seed=4)


@pytest.mark.nightly
def test_two_hundred_kills_lose_no_key_and_give_none_out_twice(herd: Herd) -> None:
    kill_at_random_moments(herd, rounds=50, seed=2026)


def test_processes_that_claim_at_the_same_time_never_get_the_same_key(herd: Herd) -> None:
    filled(herd.store, 300)
    workers = [herd.start("drain") for _ in range(2)]
    assert wait_until(lambda: not any(alive(worker.pid) for worker in workers))
    got = [worker.ids("claimed") for worker in workers]
    assert all(got), "one of them took all: nothing is shown"
    assert sorted(got[0] + got[1]) == sorted(statuses(herd.store))


def test_a_full_disk_is_named_and_takes_no_key_along(herd: Herd) -> None:
    worker = herd.start("fill")
    assert wait_until(lambda: not alive(worker.pid))
    assert "free some space" in worker.lines("refused")[0] or "free space" in worker.lines("refused")[0]
    in_store, printed = worker.lines("stored")[0].split()
    assert in_store == printed and int(printed) > 0
    assert worker.lines("went on") == ["100"]
    assert verify_store(herd.store) == ()
