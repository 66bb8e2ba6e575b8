"""The generator's role: what it makes when it is told to, and while the service is idle."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from labconsole.clock import now_ns
from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.trial import Level, Series
from labconsole_keypool.live.generator_role import GeneratorRole
from labconsole_keypool.live.role_settings import RoleSettings
from labconsole_keypool.live.service_link import HOST, connect_command
from labconsole_keypool.live.service_parameters import ServiceParameters
from labconsole_keypool.live.wire import TOKEN_BYTES, Busy, Decoder, End, Frame, Hello, Idle, Member, encode
from labconsole_keypool.store.key_reader import KeyReader
from tests.labconsole_keypool.signing_lab import PIN, new_token

TOKEN = bytes(range(TOKEN_BYTES))


class Context:
    """The role's context: keeps what it was given."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self.stop_requested = False
        self.start_ns = 0
        self.counts: Counter[str] = Counter()
        self.commands: deque[dict[str, Any]] = deque()
        self.stored: list[NDArray[np.int64]] = []

    def secret(self, key: str) -> Secret | None:
        return PIN

    def series(self, series: Series) -> Context:
        return self

    def extend(self, **columns: ArrayLike) -> None:
        self.stored.append(np.asarray(columns["stored"]))

    def count(self, channel: str, amount: int, span_ns: tuple[int, int] | None = None) -> None:
        self.counts[channel] += amount

    def observe(self, channel: str, values_ns: NDArray[np.int64]) -> None:
        return

    def tick(self) -> None:
        return

    def event(self, name: str, message: str, level: Level = Level.INFO, **data: Any) -> None:
        return

    def take_command(self) -> dict[str, Any] | None:
        return self.commands.popleft() if self.commands else None


class Service:
    """The other end of the generator's link."""

    def __init__(self) -> None:
        self._listener = socket.create_server((HOST, 0))
        self.command = connect_command(self._listener.getsockname()[1], TOKEN)

    def accept(self) -> Frame:
        """Let the generator in; what it says first."""
        self._listener.settimeout(10)
        self._connection, _ = self._listener.accept()
        [hello] = Decoder().feed(self._connection.recv(1000))
        return hello

    def tell(self, frame: Frame) -> None:
        self._connection.sendall(encode(frame))

    def close(self) -> None:
        self._connection.close()
        self._listener.close()


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> TokenConfiguration:
    return new_token(tmp_path_factory.mktemp("softhsm"))


@contextmanager
def generator(configuration: TokenConfiguration, store: Path, **parameters: Any) -> Iterator[Context]:
    """A generator that has begun, on a thread; it has ended after the block, which tells it to."""
    settings = RoleSettings(
        name="generator-1",
        parameters=ServiceParameters(key_kind="p-256", **parameters),
        token="test",
        configuration=configuration,
        store=store,
        run="run",
    )
    context = Context(settings.model_dump(mode="json"))
    role = GeneratorRole(context)
    try:
        assert role.prepare()["token"]
        thread = threading.Thread(target=role.run)
        thread.start()
        try:
            yield context
        finally:
            context.stop_requested = True
            thread.join(10)
    finally:
        role.close()
    assert not thread.is_alive()


def until(condition: Callable[[], bool]) -> None:
    deadline_ns = now_ns() + 10_000_000_000
    while not condition():
        assert now_ns() < deadline_ns, "it never came"
        time.sleep(0.005)


def stored(store: Path) -> int:
    reader = KeyReader(store)
    try:
        return reader.counts().new
    finally:
        reader.close()


def test_it_fills_the_pool_when_it_is_told_as_fast_as_the_token_is(
    configuration: TokenConfiguration, tmp_path: Path
) -> None:
    with generator(configuration, tmp_path / "keys.db", timing="luna-sa-1700", emulation_speed=100) as context:
        began_ns = now_ns()
        context.commands += [{"do": "fill", "keys": 60}, {"do": "fill", "keys": 3}]
        until(lambda: context.counts["keys_stored"] == 63)
        assert now_ns() - began_ns < 60 * 5.88e6, "emulated, it would have taken longer"
    assert context.counts == {"keys_generated": 63, "keys_stored": 63}
    assert stored(tmp_path / "keys.db") == 63 == sum(map(len, context.stored))


def test_it_generates_while_the_service_is_idle_and_up_to_the_limit(
    configuration: TokenConfiguration, tmp_path: Path
) -> None:
    service = Service()
    with generator(configuration, tmp_path / "keys.db", pool_limit=300) as context:
        context.commands.append(service.command)
        assert service.accept() == Hello(TOKEN, Member.GENERATOR, "generator-1")
        time.sleep(0.1)
        assert not context.counts, "it was not told yet that nobody waits"
        service.tell(Idle())
        until(lambda: context.counts["keys_generated"] > 0)
        service.tell(Busy())
        time.sleep(0.1)
        made = context.counts["keys_generated"]
        assert context.counts["keys_stored"] == made
        time.sleep(0.1)
        assert context.counts["keys_generated"] == made < 300
        service.tell(Idle())
        until(lambda: context.counts["keys_stored"] == 300)
        time.sleep(0.15)
    assert context.counts["keys_generated"] == 300 == stored(tmp_path / "keys.db")
    service.close()


def test_it_ends_with_the_service(configuration: TokenConfiguration, tmp_path: Path) -> None:
    service = Service()
    with generator(configuration, tmp_path / "keys.db") as context:
        context.commands.append(service.command)
        service.accept()
        service.tell(Idle())
        service.tell(End())
        until(lambda: threading.active_count() == 1)
        assert not context.stop_requested
    service.close()
