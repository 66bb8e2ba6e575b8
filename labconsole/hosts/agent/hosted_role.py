"""The process of a role that an agent has started for a console: its numbered lines in and out, and its end."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from labconsole.clock import AHEAD_VARIABLE
from labconsole.engine.launcher import ChildRole, how_it_ended
from labconsole.engine.protocol import LIVE, ChannelFrame, decode_line, encode_line

_LIVE_START = b'{"t":"%s"' % LIVE.encode()
_LATEST_START = _LIVE_START, b'{"t":"usage"'
"""What lines begin with of which the newest replaces those before."""
_BEGIN_START = b'{"t":"begin"'
_STOP = encode_line({"t": "stop"})
GRACE_S = 3.0
"""A role that was asked to stop is killed after it."""
LOST_CONSOLE_S = 15.0
"""A console that does not ask for the lines of its roles for so long is lost."""
IDLE_S = 60.0
"""A role without its console that has counted something, and counts nothing more for so long, has finished its work."""
LONGEST_S = 24 * 3600.0
"""No role works for longer without its console."""


@dataclass(frozen=True)
class Lines:
    """Lines of a role's output; those after them begin at number `next`. `ended`: how, once there are no more.

    `expected`: the number of the first line of its input that has not arrived.
    """

    next: int
    lines: tuple[bytes, ...]
    expected: int
    ended: str = ""


class HostedRole:
    """A role's process."""

    def __init__(self, name: str, task: Mapping[str, Any], ahead_ns: int) -> None:
        self._child = ChildRole(name, env={**os.environ, AHEAD_VARIABLE: str(ahead_ns)})
        self._loop = asyncio.get_running_loop()
        self.changed = asyncio.Event()
        self._turn = threading.Lock()
        self._lines: deque[tuple[int, bytes]] = deque()
        self._count = 0
        self._early: dict[int, bytes] = {}
        self._next = 0
        self._input: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=target, name=f"{name}-{what}", daemon=True)
            for target, what in ((self._read, "output"), (self._write, "input"))
        ]
        self._ended_s = 0.0
        self._begun = False
        self._live = b""
        self._counted, self._counted_s = 0, 0.0
        self._stopping_s = 0.0
        self._asked_s = time.monotonic()
        for thread in self._threads:
            thread.start()
        self._input.put(encode_line(task))

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether its process has not ended."""
        return self._child.code is None

    @property
    def silent_s(self) -> float:
        """For how long its console has not asked for lines."""
        return time.monotonic() - self._asked_s

    def send(self, number: int, line: bytes) -> None:
        """Take line `number` (from 0) for its input: lines may arrive in another order, and more than once."""
        if number >= self._next:
            self._early[number] = line
        while self._next in self._early:
            self._begun = self._begun or self._early[self._next].startswith(_BEGIN_START)
            self._input.put(self._early.pop(self._next))
            self._next += 1

    def say(self, line: bytes) -> None:
        """Add a line to its output; a live one replaces that which waits."""
        with self._turn:
            if line.startswith(_LIVE_START):
                self._live = line
            for start in _LATEST_START:
                if line.startswith(start):
                    self._lines = deque(kept for kept in self._lines if not kept[1].startswith(start))
            self._lines.append((self._count, line))
            self._count += 1
        self._loop.call_soon_threadsafe(self.changed.set)

    def none(self, after: int, ended: str = "") -> Lines:
        """The answer without lines: those from number `after` on are still to come, unless it has `ended`."""
        return Lines(after, (), self._next, ended)

    def taken(self, after: int) -> Lines | None:
        """The lines from number `after` on, those before being forgotten; None: there are none yet."""
        self._asked_s = time.monotonic()
        self.changed.clear()
        complete = not self._threads[0].is_alive()  # asked before its last lines are taken
        with self._turn:
            while self._lines and self._lines[0][0] < after:
                self._lines.popleft()
            waiting, following = tuple(line for _, line in self._lines), self._count
        if waiting:
            return Lines(following, waiting, self._next)
        code = self._child.code
        if code is None:
            return None
        self._ended_s = self._ended_s or time.monotonic()
        late = time.monotonic() - self._ended_s > 1.0  # a process that it left behind may hold its output open
        return Lines(following, (), self._next, how_it_ended(code)) if late or complete else None

    @property
    def counts(self) -> bool:
        """Whether it has counted something: others, such as brokers, serve them."""
        return self._counted > 0

    def has_work(self, silent_s: float) -> bool:
        """Whether it has work to finish although its console has been silent for so long; ask a few times a second.

        One that was never sent T0 has none, and neither has one whose counts no longer grow.
        """
        message = decode_line(self._live)
        counted = sum(ChannelFrame.from_json(data).count for data in message["channels"].values()) if message else 0
        if counted != self._counted or silent_s < LOST_CONSOLE_S:
            self._counted, self._counted_s = counted, time.monotonic()
        idle = self.counts and time.monotonic() - self._counted_s > IDLE_S
        return self._begun and not idle and not self._stopping_s and silent_s < LONGEST_S

    def stop(self) -> None:
        """Ask it to stop and drain; called again, kill it once it is late."""
        if not self._stopping_s:
            self._stopping_s = time.monotonic()
            self._input.put(_STOP)
        elif time.monotonic() - self._stopping_s > GRACE_S:
            self.kill()

    def kill(self) -> None:
        """Kill it."""
        self._child.kill()

    def close(self) -> None:
        """Wait for its end, which is near, and release its pipes."""
        self._child.wait()
        self._input.put(None)
        for thread in self._threads:
            thread.join(1.0)

    def _read(self) -> None:
        for line in self._child.lines():
            self.say(line)
        self._loop.call_soon_threadsafe(self.changed.set)

    def _write(self) -> None:
        while (line := self._input.get()) is not None:
            self._child.send(line)
        self._child.close()
