"""A process for the crash tests: adds or claims keys until it is killed, and prints what is committed."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from labconsole.store.errors import StoreError
from labconsole_keypool.store.key_links import ids_as_text
from labconsole_keypool.store.key_store import KeyStore
from tests.labconsole_keypool.stored_keys import KIND, TOKEN, new_keys, new_wrapper, signatures

BATCH = 7


def say(word: str, *values: object) -> None:
    print(word, *values, flush=True)


def add(store: KeyStore) -> None:
    """Add batches under wrapper keys of 50 pairs."""
    added = 0
    while True:
        wrapper = store.wrapper_for(TOKEN, KIND) or new_wrapper(store, limit_keys=50 * BATCH)
        store.add(new_keys(wrapper, BATCH, first=added))
        added += BATCH
        say("added", BATCH)


def claim(store: KeyStore) -> None:
    """Claim a few keys, use all but one of them, over and over; every fifth time give one back as invalid."""
    number = 0
    while True:
        keys = [key.id for key in store.claim(KIND, [wrapper.serial for wrapper in store.wrappers()], 3)]
        say("claimed", ids_as_text(keys))
        if number % 5 == 0:
            store.invalid(keys[2:], "left over")
        store.used(keys[:2], signatures(keys[:2], run=str(store.head().rows), first=number))
        say("used", ids_as_text(keys[:2]))
        number += 1


def drain(store: KeyStore) -> None:
    """Claim everything, a few at a time."""
    while keys := store.claim(KIND, [wrapper.serial for wrapper in store.wrappers()], 5):
        say("claimed", ids_as_text([key.id for key in keys]))
        time.sleep(0.002)  # in place of work with them


def fill(store: KeyStore) -> None:
    """Add under a limit on the size of files until it is refused, then claim, then lift the limit and add again."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    wrapper = new_wrapper(store, limit_keys=100_000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
    added = 0
    try:
        while True:
            store.add(new_keys(wrapper, 100, first=added))
            added += 100
    except StoreError as error:
        say("refused", error)
    say("stored", store.counts().new, added)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    store.add(new_keys(wrapper, 100, first=added))
    say("went on", store.counts().new - added)


TASKS = {"add": add, "claim": claim, "drain": drain, "fill": fill}


def herd() -> None:
    """Fork a process for each line `STORE TASK OUTPUT` on standard input and print its pid.

    No import is done twice, and no statement compiled twice: a kill at a random moment is to meet work.
    """
    with TemporaryDirectory() as directory, KeyStore.open(Path(directory) / "first.db") as first:
        wrapper = new_wrapper(first)
        first.add(new_keys(wrapper, 2))
        used, unused = first.claim(KIND, [one.serial for one in first.wrappers()], 2)
        first.used([used.id], signatures([used.id]))
        first.invalid([unused.id], "not needed")
        first.wrapper_for(TOKEN, KIND)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that no zombies are left
    for line in sys.stdin:
        store, task, output = line.split()
        pid = os.fork()
        if not pid:
            sys.stdout = Path(output).open("w")  # noqa: SIM115 - as long as the process
            with KeyStore.open(Path(store)) as opened:
                TASKS[task](opened)
            sys.stdout.close()
            os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    herd()
