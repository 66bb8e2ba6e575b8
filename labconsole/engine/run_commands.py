"""The operator's commands into a run: the console sends them, the run's worker validates, records and delivers them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from textwrap import shorten
from typing import Any

from labconsole.clock import now_ns
from labconsole.engine.role_handle import RoleChild
from labconsole.errors import UserError
from labconsole.model.series import Event, Level
from labconsole.model.trial_command import TrialCommand

_LONGEST = 60
"""Characters of a parameter in the sentence on a command; the event's data has all of it."""
DELIVERED = "command"
"""Name of the event of a command that is delivered next. Its data: command, parameters, role (empty: the trial's own
`run`), and `sent_by`, where the operator sent it (`window`)."""
REFUSED = "command refused"
"""Name of the event of a command that is not delivered; its message says why."""


class SentCommands:
    """The commands that the console has sent into one run, until the run has taken them."""

    def __init__(self) -> None:
        self._sent: deque[tuple[str, dict[str, Any]]] = deque()
        self.over = False
        """Whether the run no longer accepts commands."""

    def message(self, name: str, parameters: Mapping[str, Any], role: str, sent_by: str) -> dict[str, Any]:
        """The message to the worker with the next command."""
        self._sent.append((name, _command_data(name, role, sent_by)))
        return {"t": "command", "name": name, "parameters": dict(parameters), "role": role, "sent_by": sent_by}

    def taken(self) -> None:
        """The run has taken the oldest: its event shows whether it was delivered."""
        self._sent.popleft()

    def end(self, run_id: int) -> list[Event]:
        """The run is over: one event for each command that it has not taken."""
        self.over = True
        left, self._sent = list(self._sent), deque()
        sentence = "Run {0} ended before the command {1} arrived: it was not delivered."
        return [
            Event(now_ns(), "console", Level.WARNING, REFUSED, sentence.format(run_id, name), data)
            for name, data in left
        ]


class RunCommands:
    """Takes the commands of one run. Each leaves one event, DELIVERED or REFUSED, in the order in which they came."""

    def __init__(
        self,
        declared: Collection[TrialCommand],
        roles: Sequence[RoleChild],
        record: Callable[..., None],
        taken: Callable[[], None],
        wake: Callable[[], None],
    ) -> None:
        """`roles` are those that were started until now; `record` writes an event; `taken` is called after each
        command, and `wake` when one is queued for the trial's `run`."""
        self._declared = {command.name: command for command in declared}
        self._roles = roles
        self._record = record
        self._taken = taken
        self._wake = wake
        self._waiting: deque[dict[str, Any]] = deque()
        self._turn = threading.Lock()
        self._closed = False
        self._over = False

    def take(self) -> dict[str, Any] | None:
        """The next command for the trial's own `run`."""
        return self._waiting.popleft() if self._waiting else None

    def receive(self, message: Mapping[str, Any]) -> None:
        """Take a command of the operator (on the reader thread)."""
        with self._turn:
            if self._over:
                return  # the run no longer records: the console reports that it has ended
            self._deliver(message["name"], message["parameters"], message["role"], message["sent_by"])
            self._taken()

    def close(self) -> None:
        """Refuse all later commands: the trial's `run` is over."""
        with self._turn:
            self._closed = True

    def end(self) -> None:
        """Ignore all later commands: the run no longer records events."""
        with self._turn:
            self._over = True

    def _deliver(self, name: str, values: Mapping[str, Any], role: str, sent_by: str) -> None:
        said = _command_data(name, role, sent_by)
        try:
            command = self._permitted(name)
            parameters = command.validated(values)
            receiver = self._receiver(command, role)
        except UserError as error:
            self._record(REFUSED, str(error), Level.WARNING, **said)
            return
        what = ", ".join(shorten(f"{key} {value}", _LONGEST) for key, value in parameters.items())
        title = f"{command.title} ({what})" if what else command.title
        sentence = f"{title}: sent to {role or 'the run'} by the operator ({sent_by})."
        self._record(DELIVERED, sentence, Level.INFO, parameters=parameters, **said)
        delivered = {"name": name, "parameters": parameters}
        if receiver is not None:
            receiver.command(delivered)
        else:
            self._waiting.append(delivered)
            self._wake()

    def _permitted(self, name: str) -> TrialCommand:
        command = self._declared.get(name)
        if command is None:
            raise UserError(f"The command {name} is not declared: add it to `commands` of the trial.")
        if self._closed:
            raise UserError(f"The run ended before {command.title} arrived: it was not delivered.")
        return command

    def _receiver(self, command: TrialCommand, role: str) -> RoleChild | None:
        """The role that the command is sent to; None for the trial's own `run`."""
        if not command.roles:
            if role:
                raise UserError(f"{command.title} is sent to the run, and not to a role such as {role}.")
            return None
        child = next((child for child in self._roles if child.name == role), None)
        if child is None or not command.takes(role):
            raise UserError(
                f"{command.title} cannot be sent to {role or 'the run'}: choose one of {', '.join(command.roles)}."
            )
        if not child.running:
            raise UserError(f"Role {role} ended before {command.title} arrived: it was not delivered.")
        return child


def _command_data(name: str, role: str, sent_by: str) -> dict[str, Any]:
    """The data of every event of a command."""
    return {"command": name, "role": role, "sent_by": sent_by}
