"""`RunContext` in the worker: starts roles, waits for them, receives commands, and reports live frames."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from labconsole.clock import now_ns
from labconsole.engine.launcher import Launcher, LocalLauncher, RoleStart, RunFiles
from labconsole.engine.protocol import ChannelFrame, LiveFrame, MessageChannel, RoleValues, event_to_json
from labconsole.engine.role_handle import RoleChild
from labconsole.engine.run_commands import RunCommands
from labconsole.engine.spool import SpoolAttachment, SpoolWriter
from labconsole.engine.usage import MachineMeter, UsageMeter
from labconsole.errors import UserError
from labconsole.model.series import Event, Level, LiveChannel, LiveKind
from labconsole.model.trial import RoleHandle, RoleSpec
from labconsole.model.trial_command import TrialCommand
from labconsole.security.secret_value import Secret
from labconsole.store.records import StoredFile, StoredRole


class LiveValues:
    """Joins the newest live values of the roles of a run."""

    def __init__(self, declared: Collection[LiveChannel]) -> None:
        self._declared = {channel.name: channel for channel in declared}
        self._by_role = [channel.name for channel in declared if channel.by_role]
        self._gauges = [channel.name for channel in declared if channel.kind is LiveKind.GAUGE]
        self._states = [channel.name for channel in declared if channel.kind is LiveKind.STATE]

    def check(self, name: str, kind: LiveKind) -> None:
        """Raise UserError unless the trial declares this channel, and as one of this kind."""
        channel = self._declared.get(name)
        if channel is None:
            raise UserError(f"The live channel {name} is not declared: add it to `live` of the trial.")
        if channel.kind is not kind:
            raise UserError(
                f"The live channel {name} is declared as a {channel.kind} and reported as a {kind}: change one of them."
            )

    def check_all(self, roles: Sequence[RoleChild]) -> None:
        """Raise UserError where a role reports a channel that the trial does not declare."""
        reported = sorted({named for role in roles for named in _reported(role)})
        for name, kind in reported:
            self.check(name, kind)

    def totals(self, roles: Sequence[RoleChild]) -> dict[str, ChannelFrame]:
        """Counts and observations of all roles together, by channel."""
        reported: dict[str, list[ChannelFrame]] = {}
        for role in roles:
            for name, frame in role.channels.items():
                reported.setdefault(name, []).append(frame)
        return {name: first.plus(*others) for name, (first, *others) in reported.items()}

    def by_role(self, roles: Sequence[RoleChild]) -> RoleValues:
        """The values of each role, of the channels that are declared so."""
        return RoleValues(
            {
                name: {role.name: role.channels[name].count for role in roles if name in role.channels}
                for name in self._by_role
            },
            {name: {role.name: role.gauges[name] for role in roles if name in role.gauges} for name in self._gauges},
            {name: {role.name: role.states[name] for role in roles if name in role.states} for name in self._states},
        )


def _reported(role: RoleChild) -> Iterator[tuple[str, LiveKind]]:
    for names, kind in ((role.channels, LiveKind.TOTAL), (role.gauges, LiveKind.GAUGE), (role.states, LiveKind.STATE)):
        for name in names:
            yield name, kind


ROLE_GRACE_S = 3.0
"""How long roles may take to drain and exit after they were asked to stop."""
_GATHER_S = 0.3
"""How long to wait, after a role failed, for the failure of the role that caused it."""


class WorkerContext:
    """`RunContext` of the worker process."""

    def __init__(
        self,
        channel: MessageChannel,
        directory: Path,
        seed: int,
        live_hz: float,
        secrets: Mapping[str, Secret],
        keep: Callable[[str, str, bytes], None],
        declared: Collection[LiveChannel],
        commands: Collection[TrialCommand] = (),
        launcher: Launcher | None = None,
    ) -> None:
        """`keep` stores an artefact of the run: name, media type, content; `declared` are the trial's live channels."""
        self._channel = channel
        self._keep = keep
        self._live = LiveValues(declared)
        self._directory = directory
        self._seed = seed
        self._live_hz = live_hz
        self._secrets = secrets
        self._launcher = launcher or LocalLauncher()
        self._files = RunFiles(directory / "files")
        self._spool = SpoolWriter(directory / "worker.spool")
        self._usage_spool = SpoolWriter(directory / "usage.spool")
        self.usage = UsageMeter(self._usage_spool)
        self.usage.watch("worker", os.getpid())
        self.machine = MachineMeter(self._usage_spool)
        self.machine.watch(os.getpid())
        self.machine.watch(os.getppid())  # the console, which shows the run
        self._roles: list[RoleChild] = []
        self._attachments: list[SpoolAttachment] = []
        self._changed = threading.Event()
        self._commands = RunCommands(commands, self._roles, self.event, self._command_taken, self._changed.set)
        self._stop = False
        self._failure: str | None = None
        self._begin_ns: int | None = None
        self._total = 0
        self._progress_channel = ""
        self._switching = threading.Lock()
        self._ended = False

    @property
    def seed(self) -> int:
        return self._seed

    @property
    def stop_requested(self) -> bool:
        return self._stop

    @property
    def failure(self) -> str | None:
        """Why the run cannot continue, where the cause is outside of its trial."""
        self._check_channels()
        return self._failure

    @property
    def refused_secrets(self) -> list[str]:
        """Keys of the secrets that a device refused a role of this run."""
        return sorted({key for role in self._roles for key in role.refused})

    @property
    def live_hz(self) -> float:
        """Frames per second that the live view asked for; 0 is none."""
        return self._live_hz

    @property
    def lead_ns(self) -> int:
        return self._launcher.lead_ns

    @property
    def clock_uncertainty_ns(self) -> int:
        return self._launcher.clock_uncertainty_ns

    def start(self, role: RoleSpec, host: str | None = None) -> RoleHandle:
        start = RoleStart(
            role.name,
            role.target,
            role.settings,
            role.secrets,
            {request.key: self._secrets[request.key] for request in role.secrets if request.key in self._secrets},
            {key: self._files.keep(path) for key, path in role.files.items()},
            role.private_files,
            self._directory / f"{role.name}.spool",
            self._live_hz,
        )
        process = self._launcher.launch(start, host)
        child = RoleChild(role.name, process, self._changed.set, lambda: self._stop)
        self._roles.append(child)
        files = tuple(StoredFile(key, file.named.name, file.size, file.sha256) for key, file in start.files.items())
        self._spool.role(StoredRole(role.name, process.host, process.clock_domain, files))
        if child.pid is not None:
            self.usage.watch(role.name, child.pid)
            self.machine.watch(child.pid)
        self._channel.send({"t": "role", "name": role.name})
        return child

    def wait(
        self,
        roles: Sequence[RoleHandle],
        *,
        stall_s: float,
        reason: str,
        on_command: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        last, last_change = self._counted(), time.monotonic()
        while not self._stop and any(role.running for role in roles):
            self._raise_failure()
            while on_command is not None and (command := self.take_command()) is not None:
                on_command(command)
            self._changed.wait(0.25)
            self._changed.clear()
            counted = self._counted()
            if counted != last:
                last, last_change = counted, time.monotonic()
            elif time.monotonic() - last_change > stall_s:
                raise UserError(reason)
        if not self._stop:
            self._raise_failure()

    def expect(self, total: int, channel: str, begin_ns: int) -> None:
        self._live.check(channel, LiveKind.TOTAL)
        self._total = total
        self._progress_channel = channel
        self._begin_ns = begin_ns
        self.machine.watch_children()

    def event(self, name: str, message: str, level: Level = Level.INFO, **data: Any) -> None:
        event = Event(now_ns(), "worker", level, name, message, data)
        self._spool.event(event)
        self._channel.send({"t": "event", "event": event_to_json(event)})

    def artefact(self, name: str, media_type: str, content: bytes) -> None:
        self._keep(name, media_type, content)

    def attachment(self, name: str, media_type: str) -> SpoolAttachment:
        attachment = SpoolAttachment(self._spool, "worker", name, media_type)
        self._attachments.append(attachment)
        return attachment

    def take_command(self) -> dict[str, Any] | None:
        return self._commands.take()

    def fail(self, sentence: str) -> None:
        """Let the next `wait` raise: the run cannot continue for a reason outside of its trial. From any thread."""
        self._failure = sentence
        self._changed.set()

    def on_message(self, message: dict[str, Any]) -> None:
        """Take a message of the supervisor (on the reader thread)."""
        match message["t"]:
            case "cancel":
                self._stop = True
                self._changed.set()
                for role in self._roles:
                    role.wake_waiters()
            case "command":
                self._receive_command(message)
            case "live_hz" if message["hz"] != self._live_hz:
                self._switch_live(message["hz"])

    def frame(self) -> LiveFrame:
        """The state of all roles now."""
        self._check_channels()
        channels, by_role = self._live.totals(self._roles), self._live.by_role(self._roles)
        done = channels[self._progress_channel].count if self._progress_channel in channels else 0
        elsewhere = {role.name: role.usage for role in self._roles if role.usage is not None}
        usage, progress, now = {**self.usage.latest, **elsewhere}, self._progress_channel, now_ns()
        begin_ns = self._begin_ns if self._begin_ns is not None and self._begin_ns <= now else None
        return LiveFrame(now, begin_ns, done, self._total, channels, usage, progress, by_role)

    def end_roles(self) -> None:
        """Accept no further command, end every role that still runs, and let them write their last samples."""
        self._commands.close()
        for role in self._roles:
            if role.running:
                role.stop()
        deadline = time.monotonic() + ROLE_GRACE_S
        killed = [role.name for role in self._roles if role.end(deadline)]
        if killed:
            names = ", ".join(killed)
            self.event("killed", f"Did not end within {ROLE_GRACE_S:g} s and was killed: {names}.", Level.WARNING)

    def close(self) -> None:
        """Close the worker's own spool files."""
        self._commands.end()
        with self._switching:
            self._ended = True
        for attachment in self._attachments:
            attachment.flush()
        self._spool.close()
        self.machine.flush()
        self._usage_spool.close()

    def _command_taken(self) -> None:
        self._channel.send({"t": "command taken"})

    def _receive_command(self, message: dict[str, Any]) -> None:
        try:
            self._commands.receive(message)
        except UserError as error:  # it cannot be recorded, and is not delivered: a full disk, say
            self.fail(str(error))

    def _switch_live(self, hz: float) -> None:
        """Report at another rate from now on: it costs time, so a reader of the figures must know."""
        with self._switching:
            if self._ended:
                return
            self._live_hz = hz
            for role in self._roles:
                role.set_live(hz)
            what = f"The live view asked for {hz:g} frames a second." if hz else "The live view was switched off."
            self.event("live view", what, live_view_hz=hz)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise UserError(self._failure)
        if any(role.failure is not None for role in self._roles):
            time.sleep(_GATHER_S)
            failures = {role.name: role.failure for role in self._roles if role.failure is not None}
            for name, sentence in failures.items():
                self.event("failed", sentence, Level.ERROR, role=name)
            raise UserError(next(iter(failures.values())))  # the role that others rely on was started first

    def _check_channels(self) -> None:
        """Let the run fail where a role has reported a live channel that its trial does not declare."""
        try:
            self._live.check_all(self._roles)
        except UserError as fault:
            self.fail(str(fault))

    def _counted(self) -> int:
        return sum(channel.count for role in self._roles for channel in role.channels.values())
