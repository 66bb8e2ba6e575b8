"""A generator as a role: fills the pool before the run, then makes keys while no request waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import astuple
from typing import Any

from labconsole.model.role import Role, RoleContext
from labconsole.security.token.cryptoki.opening import open_token
from labconsole.security.token.errors import TokenGoneError
from labconsole_keypool.device.generator import Generator, KeyTimes
from labconsole_keypool.messages.service_frames import Busy, End, Idle, Member
from labconsole_keypool.series import GENERATED, KEYS_GENERATED_CHANNEL, KEYS_STORED_CHANNEL, of_origin
from labconsole_keypool.service.connections import ServiceLink, connect
from labconsole_keypool.service.role_settings import RoleSettings
from labconsole_keypool.store.key_store import KeyStore

_POLL_S = 0.02
_POLL_TIMEOUT_S = 0.1
_AT_ONCE = 200
"""Keys that are made before the pool is counted again."""


class GeneratorRole(Role):
    """Settings: `RoleSettings`. Begun at once, it works by commands.

    `{"do": "fill", "keys": n}` makes `n` keys at the token's own speed, regardless of waiting requests.
    `{"do": "connect", ...}` (`connections`) lets it make keys while the queue of the service is empty, up to
    the pool's limit, until the service ends; a key that is begun is made to its end.
    """

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._settings = RoleSettings.model_validate(context.settings)
        self._series = context.series(of_origin(GENERATED, self._settings.parameters.origin))
        self._device = self._settings.device()
        self._resources = ExitStack()
        self._store: KeyStore | None = None
        self._generator: Generator | None = None
        self._link: ServiceLink | None = None
        self._idle = False
        self._ended = False
        self._made = 0

    def prepare(self) -> dict[str, Any]:
        """Open the token and the key store; reports the token's serial number.

        Raises:
            UserError: wrong PIN, or token or key store cannot be used.
        """
        settings = self._settings
        token = open_token(settings.token, settings.configuration, settings.pin(self.context))
        self._resources.callback(token.close)
        self._store = self._resources.enter_context(KeyStore.open(settings.store, run=settings.run))
        self._device.connect()
        self._generator = Generator(
            token,
            self._store,
            self._device,
            settings.parameters.key_kind,
            settings.parameters.keys_per_wrapper,
            on_generated=self._generated,
            on_stored=self._stored,
        )
        self._generator.ensure_wrapper()
        return {"token": token.identity.serial}

    def run(self) -> dict[str, Any]:
        """Generate by commands. Raises UserError: the store or the service is gone, or the token refuses."""
        try:
            while not self._stopped():
                room = self._room() if self._idle else 0
                if room:
                    self._make(room, self._must_pause)
                else:
                    self._listen(_POLL_TIMEOUT_S)
        except TokenGoneError as error:
            return self._settings.without_token(self.context, error)
        return {"made": self._made}

    def close(self) -> None:
        """Close the link, the store and the token."""
        try:
            if self._link is not None:
                self._link.close()
        finally:
            self._resources.close()

    def _make(self, count: int, stop: Callable[[], bool]) -> None:
        assert self._generator is not None
        self._generator.make(count, stop, lambda stored: self.context.tick())

    def _room(self) -> int:
        """Keys that the pool still takes, a batch at most."""
        assert self._store is not None
        kind = self._settings.parameters.key_kind
        return min(_AT_ONCE, max(0, self._settings.parameters.pool_limit - self._store.counts(kind).new))

    def _must_pause(self) -> bool:
        """Whether requests wait, or the run is over; called before each key."""
        self._listen(0.0)
        return not self._idle or self._stopped()

    def _stopped(self) -> bool:
        return self._ended or self.context.stop_requested

    def _listen(self, timeout_s: float) -> None:
        """Handle commands and frames of the service; waits `timeout_s` at most."""
        self.context.tick()
        command = self.context.take_command()
        if command is not None:
            self._execute(command)
        elif self._link is None:
            time.sleep(min(timeout_s, _POLL_S))
        else:
            for frame in self._link.receive(timeout_s):
                match frame:
                    case Idle() | Busy():
                        self._idle = isinstance(frame, Idle)
                    case End():
                        self._ended = True

    def _execute(self, command: Mapping[str, Any]) -> None:
        match command["do"]:
            case "fill":
                with self._device.hurrying():
                    self._make(command["keys"], lambda: self.context.stop_requested)
            case "connect":
                self._link = connect(command, Member.GENERATOR, self._settings.name)

    def _generated(self) -> None:
        self.context.count(KEYS_GENERATED_CHANNEL.name, 1)

    def _stored(self, times: Sequence[KeyTimes]) -> None:
        self._made += len(times)
        self.context.count(KEYS_STORED_CHANNEL.name, len(times))
        started, generated, wrapped, stored = zip(*map(astuple, times), strict=True)
        self._series.extend(started=started, generated=generated, wrapped=wrapped, stored=stored)
        self.context.tick()
