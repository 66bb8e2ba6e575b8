"""A role that learns T0 only after it begins later than the others: the run has an event of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from labconsole.clock import now_ns
from labconsole.engine.child_channel import ChildChannel
from labconsole.engine.launcher import LaunchedRole
from labconsole.engine.protocol import decode_line
from labconsole.engine.role import RoleProcess
from labconsole.engine.role_handle import RoleChild
from labconsole.engine.spool import EventBlock, SpoolReader
from labconsole.model.series import Level

MS = 1_000_000


class Sent:
    """A process that takes lines; `lines_sent` are those."""

    def __init__(self) -> None:
        self.lines_sent: list[bytes] = []

    def send(self, line: bytes) -> None:
        """As `LaunchedRole.send`."""
        self.lines_sent.append(line)

    def lines(self) -> list[bytes]:
        """It says nothing."""
        return []

    def wait(self) -> str:
        """It has ended."""
        return "ended"


def begun(at_ns: int) -> dict[str, Any]:
    """The message of a role's beginning, as the worker sends it."""
    process = Sent()
    RoleChild("sender", cast(LaunchedRole, process), lambda: None, lambda: False).begin(at_ns)
    message = decode_line(process.lines_sent[0])
    assert message is not None
    return message


@pytest.mark.parametrize(
    ("at_ns", "arrives", "late"),
    [
        (lambda: now_ns() + 300 * MS, lambda message: message, False),
        (lambda: now_ns() + 300 * MS, lambda message: message | {"at_ns": now_ns() - 40 * MS}, True),
        (lambda: now_ns() - 40 * MS, lambda message: message, False),
    ],
    ids=["in time", "late", "begins at once"],
)
def test_a_role_that_learns_t0_too_late_reports_it(
    tmp_path: Path, at_ns: Callable[[], int], arrives: Callable[[dict[str, Any]], dict[str, Any]], *, late: bool
) -> None:
    task = {"name": "sender", "settings": {}, "secrets": {}, "files": {}, "address": "127.0.0.1", "live_hz": 0}
    role = RoleProcess(cast(ChildChannel, None), task | {"spool": str(tmp_path / "sender.spool")})
    role.on_message(arrives(begun(at_ns())))
    role.wait_for_begin()
    role.close()
    events = [
        block.event for block in SpoolReader(tmp_path / "sender.spool").read_new() if isinstance(block, EventBlock)
    ]
    assert [(event.name, event.level) for event in events] == ([("late begin", Level.WARNING)] if late else [])
    assert all("was sent T0 4" in event.message and "ms too late" in event.message for event in events)
