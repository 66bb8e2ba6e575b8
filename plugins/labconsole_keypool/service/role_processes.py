"""The signers or the generators of a run: starts them, and starts another one for each that was killed."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.model.trial import Level, RoleHandle, RunContext
from labconsole.security.token.configuration import is_lab
from labconsole_keypool.service.role_settings import TOKEN_GONE, RoleSettings

MOST_REPLACEMENTS = 5
"""Of one place: a process that dies repeatedly has a persistent fault."""

REPLACED = "replaced"
"""Event: a process was killed, and another one took its place; data: lost, by."""

_READY_S = 600.0
"""Keys are loaded before a signer is ready, a slow device's for minutes."""
_FINISH_S = 30.0

CommandsFor = Callable[[int], Sequence[Mapping[str, Any]]]
"""The commands for the one at a place (from 0) that has just become ready."""


@dataclass
class _RoleSlot:
    name: str
    settings: RoleSettings
    handle: RoleHandle
    replacements: int = 0


class RoleProcesses:
    """Processes of one kind, each at its place. `target` is their role class."""

    def __init__(self, context: RunContext, target: str) -> None:
        self._context = context
        self._target = target
        self._places: list[_RoleSlot] = []
        self._later: list[RoleSettings] = []

    def __len__(self) -> int:
        return len(self._places) + len(self._later)

    def start(self, settings: Sequence[RoleSettings]) -> None:
        """Start one process for each of `settings`.

        They start now; but of a token that is not the console's own, the next one only when the one before is ready: a
        wrong PIN is tried once.
        """
        self._later = [one for one in settings if not is_lab(one.token)]
        self._places = [self._begin(one) for one in settings if is_lab(one.token)]

    def get_ready(self, early: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
        """Give each the `early` commands, and let it begin once it is ready; who is killed before is replaced.

        Returns what each reported, with its `settings`. Raises UserError: one of them cannot start.
        """
        for place in self._places:
            _command(place.handle, early)
        infos = [self._ready(place, unchanged, early) for place in self._places]
        for settings in self._later:
            place = self._begin(settings)
            self._places.append(place)
            _command(place.handle, early)
            infos.append(self._ready(place, unchanged, early))
        self._later = []
        return infos

    def command(self, orders: CommandsFor) -> None:
        """Give each the commands for its place."""
        for number, place in enumerate(self._places):
            _command(place.handle, orders(number))

    def replace_lost(
        self, again: Callable[[RoleSettings], RoleSettings], early: Sequence[Mapping[str, Any]], orders: CommandsFor
    ) -> None:
        """Start another process for each that was killed: `signer-1b` for `signer-1`.

        Args:
            again: The settings of the next one, from those of the one before.
            early: Commands that it needs to become ready.
            orders: Commands for it once it is ready.

        Raises:
            UserError: one failed with a sentence, ended too soon, or was killed repeatedly; or the last token is
                gone.
        """
        for number, place in enumerate(tuple(self._places)):
            if place.handle.running:
                continue
            if not place.handle.lost:
                self._drop_without_token(place, place.handle.finish(_FINISH_S))
                continue
            self._replace(place, again, early)
            self._ready(place, again, early)
            _command(place.handle, orders(number))

    def _drop_without_token(self, place: _RoleSlot, result: Mapping[str, Any]) -> None:
        """Remove a process whose token is gone. Raises UserError: it was the last one."""
        token = result.get(TOKEN_GONE)
        if token is None:
            return
        if len(self._places) == 1:
            raise UserError(f"The token {token} is gone, and no other one is left: put it back and run again.")
        self._places.remove(place)

    @property
    def running(self) -> bool:
        """Whether any of them has not ended."""
        return any(place.handle.running for place in self._places)

    def stop(self) -> None:
        """Ask all to stop soon."""
        for place in self._places:
            place.handle.stop()

    def finish(self) -> None:
        """Wait for the end of all. Raises UserError: one failed.

        The work is done: one that was killed after it does no harm, nor one that took another's place and came too late
        for it; its error is reported as a warning.
        """
        for place in self._places:
            try:
                place.handle.finish(_FINISH_S)
            except UserError as error:
                if place.handle.running or not (place.handle.lost or place.replacements):
                    raise
                if not place.handle.lost:
                    message = f"{place.handle.name} took another's place and was not needed any more: {error}"
                    self._context.event("not needed", message, Level.WARNING)

    def _ready(
        self, place: _RoleSlot, again: Callable[[RoleSettings], RoleSettings], early: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Let the one at `place` begin once it is ready, or another one if it is killed before; what that reported."""
        while True:
            try:
                info = place.handle.ready(_READY_S)
            except UserError:
                if not place.handle.lost:
                    raise
                self._replace(place, again, early)
            else:
                place.handle.begin(now_ns())
                return {**info, "settings": place.settings}

    def _replace(
        self, place: _RoleSlot, again: Callable[[RoleSettings], RoleSettings], early: Sequence[Mapping[str, Any]]
    ) -> None:
        lost = place.handle.name
        place.replacements += 1
        if place.replacements > MOST_REPLACEMENTS:
            raise UserError(
                f"{lost} was killed as well, after {MOST_REPLACEMENTS} before it: see the log for what its token's "
                "module says."
            )
        name = f"{place.name}{string.ascii_lowercase[place.replacements]}"
        place.settings = again(place.settings).model_copy(update={"name": name})
        place.handle = self._begin(place.settings).handle
        _command(place.handle, early)
        self._context.event(REPLACED, f"{lost} was killed; {name} takes its place.", Level.WARNING, lost=lost, by=name)

    def _begin(self, settings: RoleSettings) -> _RoleSlot:
        return _RoleSlot(settings.name, settings, self._context.start(settings.spec(self._target)))


def _command(handle: RoleHandle, commands: Sequence[Mapping[str, Any]]) -> None:
    for command in commands:
        handle.command(command)


def unchanged(settings: RoleSettings) -> RoleSettings:
    """The next one has the settings of the one before."""
    return settings
