"""The generator's role: the keys that it makes by command, and while the service is idle."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from labconsole.security.token.configuration import TokenConfiguration
from labconsole_keypool.messages.service_frames import Busy, End, Hello, Idle, Member
from labconsole_keypool.service.generator_role import GeneratorRole
from labconsole_keypool.service.role_settings import RoleSettings
from labconsole_keypool.service.service_parameters import ServiceParameters
from labconsole_keypool.store.key_reader import KeyReader
from tests.labconsole_keypool.role_lab import TOKEN, Context, Service, until
from tests.labconsole_keypool.signing_lab import new_token


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> TokenConfiguration:
    return new_token(tmp_path_factory.mktemp("softhsm"))


class HeldContext(Context):
    """The context of a role that waits at its tenth key: `held` is set there, and it continues once `released` is."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self.held, self.released = threading.Event(), threading.Event()

    def count(self, channel: str, amount: int, span_ns: tuple[int, int] | None = None) -> None:
        super().count(channel, amount, span_ns)
        if self.counts["keys_generated"] == 10 and not self.held.is_set():
            self.held.set()
            self.released.wait(60)


@contextmanager
def generator(
    configuration: TokenConfiguration, store: Path, *, held: bool = False, **parameters: Any
) -> Iterator[HeldContext]:
    """A generator that runs in a thread, and is stopped at the end of the block."""
    settings = RoleSettings(
        name="generator-1",
        parameters=ServiceParameters(key_kind="p-256", **parameters),
        token="test",
        configuration=configuration,
        store=store,
        run="run",
    )
    context = HeldContext(settings.model_dump(mode="json"))
    if not held:
        context.released.set()
    role = GeneratorRole(context)
    try:
        assert role.prepare()["token"]
        thread = threading.Thread(target=role.run, name="generator")
        thread.start()
        try:
            yield context
        finally:
            context.stop_requested = True
            context.released.set()
            thread.join(60)
    finally:
        role.close()
    assert not thread.is_alive()


def stored(store: Path) -> int:
    reader = KeyReader(store)
    try:
        return reader.counts().new
    finally:
        reader.close()


def test_fill_command_fills_the_pool_without_emulated_times(configuration: TokenConfiguration, tmp_path: Path) -> None:
    with generator(configuration, tmp_path / "keys.db", timing="luna-sa-1700") as context:
        context.commands += [{"do": "fill", "keys": 60}, {"do": "fill", "keys": 3}]
        until(lambda: context.counts["keys_stored"] == 63)  # the device takes 37 s to generate them
    assert context.counts == {"keys_generated": 63, "keys_stored": 63}
    assert stored(tmp_path / "keys.db") == 63 == sum(len(rows["stored"]) for rows in context.recorded)


def test_it_generates_while_the_service_is_idle_and_up_to_the_limit(
    configuration: TokenConfiguration, tmp_path: Path
) -> None:
    service = Service()
    with generator(configuration, tmp_path / "keys.db", held=True, pool_limit=300) as context:
        context.commands.append(service.command)
        assert service.accept() == Hello(TOKEN, Member.GENERATOR, "generator-1")
        time.sleep(0.1)
        assert not context.counts, "the service has not reported yet that no request waits"
        service.send(Idle())
        assert context.held.wait(60)
        service.send(Busy())
        context.released.set()
        until(lambda: context.counts["keys_stored"] == 10)
        time.sleep(0.1)
        assert context.counts["keys_generated"] == 10, "it pauses before the next key"
        service.send(Idle())
        until(lambda: context.counts["keys_stored"] == 300)
        time.sleep(0.15)
    assert context.counts["keys_generated"] == 300 == stored(tmp_path / "keys.db")
    service.close()


def test_it_ends_with_the_service(configuration: TokenConfiguration, tmp_path: Path) -> None:
    service = Service()
    with generator(configuration, tmp_path / "keys.db") as context:
        context.commands.append(service.command)
        service.accept()
        service.send(Idle())
        service.send(End())
        until(lambda: not any(thread.name == "generator" for thread in threading.enumerate()))
        assert not context.stop_requested
    service.close()
