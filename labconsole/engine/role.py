"""The process of one role: `python -m labconsole.engine.role`, with its task on standard input."""

from __future__ import annotations

import gc
import json
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.clock import now_ns
from labconsole.engine.child_channel import ChildChannel
from labconsole.engine.protocol import LIVE, ChannelFrame, LogHistogram, MessageChannel, higher, lower
from labconsole.engine.spool import SpoolAttachment, SpoolSeriesWriter, SpoolWriter
from labconsole.errors import UserError
from labconsole.model.dotted_names import load_dotted
from labconsole.model.role import Role, StateValues
from labconsole.model.series import Event, Level, Series
from labconsole.processes import die_with_parent
from labconsole.security.private_files import MemoryFiles
from labconsole.security.secret_value import Secret, SecretRefusedError

STATE_BYTES = 4096
"""Most bytes of all states of a role together, as JSON."""
VALUES_INTERVAL_NS = 100_000_000
"""Gauges and states are reported again after this time at the earliest, however often a live view wants frames."""


class _Total:
    """What a role counted or observed on one channel since T0."""

    def __init__(self) -> None:
        self.count = 0
        self.first_ns: int | None = None
        self.last_ns: int | None = None
        self.minimum: int | None = None
        self.maximum: int | None = None
        self.histogram = LogHistogram()

    def add(self, amount: int, first_ns: int, last_ns: int) -> None:
        self.first_ns = lower(self.first_ns, first_ns)
        self.last_ns = higher(self.last_ns, last_ns)
        self.count += amount

    def observe(self, values: NDArray[np.int64]) -> None:
        self.minimum = lower(self.minimum, int(values.min()))
        self.maximum = higher(self.maximum, int(values.max()))
        self.histogram.add(values)
        self.count += len(values)

    def frame(self) -> ChannelFrame:
        return ChannelFrame(self.count, self.minimum, self.maximum, self.histogram, self.first_ns, self.last_ns)


class RoleLive:
    """The live channels of one role. Each message has everything, so that any of them may be dropped."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._totals: dict[str, _Total] = {}
        self._gauges: dict[str, float] = {}
        self._states: dict[str, StateValues] = {}
        self._values: dict[str, Any] = {}
        self._next_values_ns = 0

    def count(self, channel: str, amount: int, span_ns: tuple[int, int] | None) -> None:
        """Add to a counter; `span_ns` is now by default."""
        first_ns, last_ns = span_ns or (now_ns(),) * 2
        self._total(channel).add(amount, first_ns, last_ns)

    def observe(self, channel: str, values_ns: NDArray[np.int64]) -> None:
        """Add observations, one at least."""
        self._total(channel).observe(values_ns)

    def gauge(self, channel: str, value: float) -> None:
        """Set a gauge."""
        self._gauges[channel] = float(value)

    def state(self, channel: str, values: StateValues) -> None:
        """Set a state, or what makes it when it is reported; it is encoded then."""
        self._states[channel] = values if callable(values) else dict(values)

    def message(self, *, last: bool = False) -> dict[str, Any]:
        """The message for the worker; the `last` one has the newest values. Raises UserError for states that are too
        large or not JSON."""
        message = {"t": LIVE, "channels": {name: total.frame().to_json() for name, total in self._totals.items()}}
        now = now_ns()
        if (self._gauges or self._states) and (last or now >= self._next_values_ns):
            self._next_values_ns = now + VALUES_INTERVAL_NS
            self._values = {"gauges": dict(self._gauges), "states": self._encoded()}
        return message | self._values

    def _encoded(self) -> dict[str, str]:
        """The states as JSON texts: worker and frames pass them on unread."""
        made = {channel: values() if callable(values) else values for channel, values in self._states.items()}
        texts: dict[str, str] = {}
        size = 0
        try:
            for channel, values in made.items():
                texts[channel] = json.dumps(values, separators=(",", ":"), ensure_ascii=False)
                size += len(texts[channel].encode())
        except (TypeError, ValueError) as error:
            del self._states[channel]
            raise UserError(f"The live state {channel} of role {self._role} is not plain JSON: {error}.") from error
        if size > STATE_BYTES:
            self._states.clear()
            raise UserError(
                f"The live state of role {self._role} ({', '.join(texts)}) has {size:,} bytes, and {STATE_BYTES:,} at "
                "most are shown: report less."
            )
        return texts

    def _total(self, name: str) -> _Total:
        total = self._totals.get(name)
        if total is None:
            total = self._totals[name] = _Total()
        return total


LATE_NS = 1_000_000
"""A role that learns T0 so long after it is reported: it begins later than the others."""
SPOOL_INTERVAL_NS = 250_000_000
_QUIET_INTERVAL_NS = 1_000_000_000
"""Between reports where no live view wants any: the worker must still see that the role progresses."""


class RoleProcess:
    """`RoleContext` of this process: spool, live channels and commands."""

    def __init__(self, channel: MessageChannel, task: Mapping[str, Any]) -> None:
        """`task` is a role's task (`launcher.role_task`) with its spool and its files. Raises UserError: these fail."""
        self._channel = channel
        self._name: str = task["name"]
        self._settings: Mapping[str, Any] = task["settings"]
        self._secrets = {key: Secret(value) for key, value in task["secrets"].items()}
        self._files = {key: Path(file["path"]) for key, file in task["files"].items()}
        self._named = {file["path"]: file["named"] for file in task["files"].values()}
        private = task.get("private_files", {})
        self._in_memory = MemoryFiles({key: file["text"] for key, file in private.items()})
        self._files |= self._in_memory.paths
        self._named |= {str(path): private[key]["named"] for key, path in self._in_memory.paths.items()}
        self._address: str = task["address"]
        self._spool = SpoolWriter(Path(task["spool"]))
        self._writers: list[SpoolSeriesWriter] = []
        self._attachments: list[SpoolAttachment] = []
        self._live = RoleLive(self._name)
        self._live_interval_ns = _interval_ns(task["live_hz"])
        self._next_live_ns = 0
        self._next_spool_ns = 0
        self._commands: deque[dict[str, Any]] = deque()
        self._stop = threading.Event()
        self._begin = threading.Event()
        self._start_ns = 0
        self._late_ns = 0

    @property
    def settings(self) -> Mapping[str, Any]:
        return self._settings

    @property
    def stop_requested(self) -> bool:
        return self._stop.is_set()

    @property
    def start_ns(self) -> int:
        return self._start_ns

    @property
    def address(self) -> str:
        return self._address

    def secret(self, key: str) -> Secret | None:
        return self._secrets.get(key)

    def file(self, key: str) -> Path | None:
        return self._files.get(key)

    def series(self, series: Series) -> SpoolSeriesWriter:
        writer = SpoolSeriesWriter(self._spool, self._name, series)
        self._writers.append(writer)
        return writer

    def attachment(self, name: str, media_type: str) -> SpoolAttachment:
        attachment = SpoolAttachment(self._spool, self._name, name, media_type)
        self._attachments.append(attachment)
        return attachment

    def count(self, channel: str, amount: int, span_ns: tuple[int, int] | None = None) -> None:
        if amount:
            self._live.count(channel, amount, span_ns)

    def observe(self, channel: str, values_ns: NDArray[np.int64]) -> None:
        if len(values_ns):
            self._live.observe(channel, values_ns)

    def gauge(self, channel: str, value: float) -> None:
        self._live.gauge(channel, value)

    def state(self, channel: str, values: StateValues) -> None:
        self._live.state(channel, values)

    def tick(self) -> None:
        now = now_ns()
        if now >= self._next_spool_ns:
            self._next_spool_ns = now + SPOOL_INTERVAL_NS
            self.flush()
        if now >= self._next_live_ns:
            self._next_live_ns = now + self._live_interval_ns
            self.send_live()

    def event(self, name: str, message: str, level: Level = Level.INFO, **data: Any) -> None:
        self._spool.event(Event(now_ns(), self._name, level, name, self.for_operator(message), data))

    def for_operator(self, sentence: str) -> str:
        """A sentence with each file's own path in place of that of its copy, which the operator does not know."""
        for copy in sorted(self._named, key=len, reverse=True):  # one in memory may be the beginning of another
            sentence = sentence.replace(copy, self._named[copy])
        return sentence

    def report(self, **data: Any) -> None:
        self._channel.send({"t": "report", "data": data})

    def take_command(self) -> dict[str, Any] | None:
        return self._commands.popleft() if self._commands else None

    def send_live(self, *, last: bool = False) -> None:
        """Send what all channels have; the `last` message has their newest values. Raises UserError for a state that
        cannot be shown."""
        self._channel.send(self._live.message(last=last))

    def on_message(self, message: dict[str, Any]) -> None:
        """Take a message of the worker (on the reader thread)."""
        match message["t"]:
            case "begin":
                self._start_ns = message["at_ns"]
                if message.get("ahead"):  # one that begins at once has no time to keep
                    self._late_ns = now_ns() - self._start_ns
                self._begin.set()
            case "stop":
                self._stop.set()
                self._begin.set()
            case "command":
                self._commands.append(message["command"])
            case "live_hz":
                self._live_interval_ns = _interval_ns(message["hz"])
                self._next_live_ns = 0

    def wait_for_begin(self) -> None:
        """Wait for T0; returns at once when the role is stopped before."""
        self._begin.wait()
        if self._late_ns > LATE_NS:
            late = f"{self._name} was sent T0 {self._late_ns / 1e6:.3g} ms too late: the link or a computer is slow."
            self.event("late begin", late, Level.WARNING, late_ns=self._late_ns)
        self._stop.wait(max(0, self._start_ns - now_ns()) / 1e9)

    def flush(self) -> None:
        """Write all samples and parts of attachments that wait."""
        for writer in self._writers:
            writer.flush()
        for attachment in list(self._attachments):
            attachment.flush()
            if attachment.closed:
                self._attachments.remove(attachment)

    def close(self) -> None:
        """Write all samples and close the spool."""
        self.flush()
        self._spool.close()
        self._in_memory.close()


def _interval_ns(hz: float) -> int:
    return int(1e9 / hz) if hz > 0 else _QUIET_INTERVAL_NS


def conduct_role(
    channel: MessageChannel, context: RoleProcess, target: str, at_begin: Callable[[], None] = lambda: None
) -> bool:
    """Run the role through its phases, and report its result or its first fault. True if all went well.

    `at_begin` is called when the role has prepared and begins to work.
    """
    faults: list[str] = []
    refused: list[str] = []

    @contextmanager
    def reporting() -> Iterator[None]:
        try:
            yield
        except UserError as error:
            faults.append(str(error))
            if isinstance(error, SecretRefusedError):
                refused.append(error.key)
        except Exception as error:  # noqa: BLE001 - the role is foreign code: whatever it raises is the run's reason
            traceback.print_exc()
            faults.append(f"A fault in {target}: {type(error).__name__}: {error}")
        if len(faults) == 1:
            channel.send({"t": "error", "sentence": context.for_operator(faults[0]), "refused": refused})

    role: Role | None = None
    result: dict[str, Any] = {}
    with reporting():
        role = load_dotted(target)(context)
        channel.send({"t": "ready", "info": role.prepare()})
        context.wait_for_begin()
        at_begin()
        result = role.run()
    with reporting():
        context.send_live(last=True)
    with reporting():
        context.flush()
    if role is not None:
        with reporting():
            role.close()
    with reporting():
        context.close()
    if not faults:
        channel.send({"t": "done", "result": result})
    return not faults


def main() -> int:
    """Entry of the role process: 0 when the role ended well, 1 otherwise."""
    channel = ChildChannel()
    task = channel.first()
    die_with_parent(task["parent_pid"])
    try:
        context = RoleProcess(channel, task)
    except UserError as error:
        channel.send({"t": "error", "sentence": str(error)})
        channel.close()
        return 1
    channel.listen(context.on_message)
    # What was loaded until a role begins is not looked through again, in the middle of a packet.
    ended_well = conduct_role(channel, context, task["target"], gc.freeze)
    channel.close()
    return 0 if ended_well else 1


if __name__ == "__main__":
    raise SystemExit(main())
