"""The worker's side of a role: starts its process, waits for its phases, and reads its messages."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from labconsole.clock import now_ns
from labconsole.engine.launcher import LaunchedRole
from labconsole.engine.protocol import ChannelFrame, Usage, decode_line, encode_line
from labconsole.errors import UserError

_EXIT_OUTPUT_S = 1.0
"""How long to continue reading after a role's death: a process that it left behind may hold its output open."""


class CancelledError(UserError):
    """The operator cancelled the run while it waited for a role."""


class RoleChild:
    """`RoleHandle` of a role that a launcher has started, wherever that is."""

    def __init__(
        self, name: str, process: LaunchedRole, on_change: Callable[[], None], cancelled: Callable[[], bool]
    ) -> None:
        self._name = name
        self._process = process
        self._on_change = on_change
        self._cancelled = cancelled
        self._info: dict[str, Any] | None = None
        self._result: dict[str, Any] | None = None
        self._sentence: str | None = None
        self._lost = False
        self._reports: deque[dict[str, Any]] = deque()
        self.channels: dict[str, ChannelFrame] = {}
        self.gauges: dict[str, float] = {}
        self.states: dict[str, str] = {}
        """JSON texts by channel."""
        self.usage: Usage | None = None
        """Of a role on another host, where it is measured."""
        self.refused: tuple[str, ...] = ()
        """Keys of the secrets that a device refused this role."""
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, name=f"role-{name}", daemon=True)
        self._watcher = threading.Thread(target=self._watch, name=f"role-{name}-end", daemon=True)
        self._reader.start()
        self._watcher.start()

    @property
    def name(self) -> str:
        return self._name

    @property
    def pid(self) -> int | None:
        """Process id of a role on this machine."""
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._result is None and self._sentence is None

    @property
    def lost(self) -> bool:
        return self._lost

    @property
    def failure(self) -> str | None:
        """The sentence with which the role failed, if it did."""
        return self._sentence

    def ready(self, timeout_s: float = 30.0) -> dict[str, Any]:
        self._wait(lambda: self._info is not None or not self.running, timeout_s, "get ready")
        if self._sentence is not None:
            raise UserError(self._sentence)
        assert self._info is not None
        return self._info

    def report(self, timeout_s: float = 30.0) -> dict[str, Any]:
        self._wait(lambda: bool(self._reports) or not self.running, timeout_s, "report")
        if self._reports:
            return self._reports.popleft()
        raise UserError(self._sentence or f"Role {self.name} ended before it had reported.")

    def begin(self, at_ns: int) -> None:
        self._send({"t": "begin", "at_ns": at_ns, "ahead": at_ns > now_ns()})

    def stop(self) -> None:
        self._send({"t": "stop"})

    def command(self, command: Mapping[str, Any]) -> None:
        """Send a command into the role."""
        self._send({"t": "command", "command": command})

    def set_live(self, hz: float) -> None:
        """Change how often the role reports live figures; 0: one report a second."""
        self._send({"t": "live_hz", "hz": hz})

    def finish(self, timeout_s: float = 30.0) -> dict[str, Any]:
        self._wait(lambda: not self.running, timeout_s, "end")
        if self._sentence is not None:
            raise UserError(self._sentence)
        assert self._result is not None
        return self._result

    def wake_waiters(self) -> None:
        """Notify waiters for this role that the run was cancelled."""
        with self._changed:
            self._changed.notify_all()

    def end(self, deadline: float) -> bool:
        """Wait for the process until `deadline` (`time.monotonic`), then kill it; returns whether that was needed.

        All its messages have been read when this returns.
        """
        self._watcher.join(max(0.0, deadline - time.monotonic()))  # `Popen.wait` polls every 50 ms only
        killed = not self._process.ended
        if killed:
            self._process.kill()
        self._watcher.join()
        self._process.close()
        return killed

    def _send(self, message: Mapping[str, Any]) -> None:
        self._process.send(encode_line(message))

    def _wait(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: condition() or self._cancelled(), timeout_s):
                raise UserError(f"Role {self.name} did not {what} within {timeout_s:g} s.")
            if not condition():
                raise CancelledError(f"Cancelled while role {self.name} had to {what}.")

    def _read(self) -> None:
        for line in self._process.lines():
            message = decode_line(line)
            if message is not None:
                self._take(message)

    def _watch(self) -> None:
        how = self._process.wait()
        self._reader.join(_EXIT_OUTPUT_S)
        if self.running:
            kept = "what was measured until then is kept"
            self._lost = True
            self._change(sentence=f"Role {self.name} {how} in mid-run; {kept}. Run it again.")

    def _take(self, message: dict[str, Any]) -> None:
        match message["t"]:
            case "live":
                self.channels = {name: ChannelFrame.from_json(data) for name, data in message["channels"].items()}
                self.gauges, self.states = message.get("gauges", {}), message.get("states", {})
            case "usage":
                self.usage = Usage(message["cpu"], message["rss"])
            case "ready":
                self._change(info=message["info"])
            case "report":
                self._reports.append(message["data"])
                self._change()
            case "error":
                self.refused = tuple(message.get("refused", ()))
                self._change(sentence=message["sentence"])
            case "done":
                self._change(result=message["result"])

    def _change(
        self, info: dict[str, Any] | None = None, result: dict[str, Any] | None = None, sentence: str | None = None
    ) -> None:
        with self._changed:
            self._info = info if info is not None else self._info
            self._result = result if result is not None else self._result
            self._sentence = sentence or self._sentence
            self._changed.notify_all()
        self._on_change()
