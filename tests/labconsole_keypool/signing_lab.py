"""A token, a key store with keys, and a signing engine that works on them, for tests of the token side."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labconsole.clock import now_ns
from labconsole.model.trial import Level
from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import Token
from labconsole.security.token.cryptoki.wrapping import make_wrapper
from labconsole.security.token.mechanisms import KeyKind, WrapMechanism
from labconsole_keypool.choices import KeySource, Refill
from labconsole_keypool.device.certification_authority import SigningCA
from labconsole_keypool.device.emulation import Device
from labconsole_keypool.device.generator import Generator
from labconsole_keypool.device.signing import SigningEngine
from labconsole_keypool.messages.service_frames import Job, JobKind
from labconsole_keypool.store.key_store import KeyStore
from tests.helpers.softhsm_token import create_softhsm_token

PIN = Secret("1234-user")
KIND = KeyKind.P_256


def new_token(directory: Path) -> TokenConfiguration:
    """The configuration of a new SoftHSM2 token in `directory`, whose PIN is `PIN`."""
    return create_softhsm_token(directory, "test", PIN, Secret("5678-officer"))


@dataclass
class RecordedReports:
    """Keeps the reports of an engine."""

    counts: Counter[str] = field(default_factory=Counter)
    events: list[tuple[str, str]] = field(default_factory=list)
    refills: list[tuple[int, int, int]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, channel: str, amount: int) -> None:
        with self._lock:
            self.counts[channel] += amount

    def event(self, name: str, message: str, level: Level = Level.INFO, **data: Any) -> None:
        self.events.append((name, message))

    def refill(self, started_ns: int, finished_ns: int, keys: int) -> None:
        self.refills.append((started_ns, finished_ns, keys))


def fill(token: Token, store: KeyStore, count: int, kind: KeyKind = KIND) -> None:
    """Put `count` keys of the token into the store, under a wrapper key that needs no probing."""
    row = store.new_wrapper(token.identity.serial, kind, WrapMechanism.KEY_WRAP_PAD, 10_000)
    make_wrapper(token.session(), row.serial, row.mechanism)
    assert Generator(token, store, Device(), kind, 10_000).make(count, lambda: False, lambda stored: None) == count


@contextmanager
def signing_engine(
    token: Token,
    store: KeyStore,
    reports: RecordedReports,
    *,
    threads: int = 1,
    batch: int = 10,
    low_water: int = 5,
    kind: KeyKind = KIND,
    keys: KeySource = KeySource.POOL,
    refill: Refill = Refill.PARALLEL,
    device: Device | None = None,
) -> Iterator[SigningEngine]:
    """An engine on the token and the store, closed at the end of the block."""
    engine = SigningEngine(
        token,
        store,
        SigningCA.of_lab(),
        device or Device(),
        reports,
        kind=kind,
        threads=threads,
        keys=keys,
        batch=batch,
        low_water=low_water,
        refill=refill,
        run="run",
    )
    try:
        yield engine
    finally:
        engine.close()


def digest(request: int, kind: KeyKind = KIND) -> Job:
    """A request to sign random bytes, received now."""
    return Job(request, now_ns(), JobKind.DIGEST, kind, os.urandom(32))


def rows(store: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query of the store's file."""
    with closing(sqlite3.connect(store)) as connection:
        return connection.execute(query).fetchall()


def change(store: Path, statement: str, *values: object) -> None:
    """Change the store's file by SQL, as an attacker would."""
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(statement, values)
