"""Roles: work in a process of its own, and the context that it has there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labconsole.model.series import Attachment, Level, Series

if TYPE_CHECKING:
    from pathlib import Path

    from labconsole.security.secret_value import Secret


StateValues = Mapping[str, Any] | Callable[[], Mapping[str, Any]]
"""A state of a live channel, or what makes it."""


class SeriesWriter(Protocol):
    """Takes samples of one series into preallocated columns; full blocks go to the role's spool file."""

    def extend(self, **columns: ArrayLike | Sequence[bytes]) -> None:
        """Append rows: every column of the series, equal lengths; a column of `BYTES` as a sequence of `bytes` (or
        `bytearray`, `memoryview`), 1 MiB in a row at most. Raises ValueError otherwise."""


class RoleContext(Protocol):
    """The interface of a role to its run, inside its own process."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The role's settings, as in its RoleSpec."""

    @property
    def stop_requested(self) -> bool:
        """Whether the role must stop soon. Cheap: may be read per message."""

    @property
    def start_ns(self) -> int:
        """T0 (`clock.now_ns`), valid in `run`."""

    @property
    def address(self) -> str:
        """The IP address at which other roles of the run reach this one: where a port of it listens."""

    def secret(self, key: str) -> Secret | None:
        """The secret `key` of the role's RoleSpec, if the operator was asked for it before the run.

        On another host than the console's it is always there, wherever the console had it from.
        """

    def file(self, key: str) -> Path | None:
        """Where to read the file or private file `key` of the role's RoleSpec, None if it has none of that key.

        The path is that of a copy: in sentences of events and errors the file's own path appears in its place.
        """

    def series(self, series: Series) -> SeriesWriter:
        """Declare a series of this role and return its writer."""

    def attachment(self, name: str, media_type: str) -> Attachment:
        """Begin a file of any size that is kept with the run (a capture, say): never a secret.

        `name` is a file name of letters, digits and `. _ -`, unique in the role. Raises UserError otherwise.
        """

    def count(self, channel: str, amount: int, span_ns: tuple[int, int] | None = None) -> None:
        """Add to a live counter. `span_ns`: first and last time (`clock.now_ns`) of what is counted; now without it."""

    def observe(self, channel: str, values_ns: NDArray[np.int64]) -> None:
        """Add observations in ns to a live histogram."""

    def gauge(self, channel: str, value: float) -> None:
        """Set this role's number on a live channel of kind GAUGE. Cheap: the newest is reported 10 times a second at
        most."""

    def state(self, channel: str, values: StateValues) -> None:
        """Set this role's state on a live channel of kind STATE: plain JSON, reported like a gauge; or what makes it,
        which `tick` calls each time when it is reported.

        All states of a role together have 4,096 bytes at most: more is a fault, raised by `tick`.
        """

    def tick(self) -> None:
        """Call at least every 100 ms: writes what is due (samples every 250 ms, live frames); cheap when nothing is."""

    def event(self, name: str, message: str, level: Level = Level.INFO, **data: Any) -> None:
        """Record something that happened, in one sentence; in `data`, `begin_ns` and `end_ns` are times of `now_ns`."""

    def report(self, **data: Any) -> None:
        """Send a small report (plain JSON) to the trial in mid-run, which waits for it with `RoleHandle.report`."""

    def take_command(self) -> dict[str, Any] | None:
        """The next command sent to this role, if any: as its trial sent it (`RoleHandle.command`), or an operator's,
        `{"name": ..., "parameters": {...}}`, where `Trial.commands` declares one for this role."""


class Role(ABC):
    """Work in a process of its own: prepare -> (T0) run -> close. A fault is raised as UserError."""

    def __init__(self, context: RoleContext) -> None:
        self.context = context

    def prepare(self) -> dict[str, Any]:
        """Get ready, and return what other roles need (ports, say). Runs before T0."""
        return {}

    @abstractmethod
    def run(self) -> dict[str, Any]:
        """Work from T0 until done, or soon after `context.stop_requested`; drain; return a small JSON result."""

    def close(self) -> None:
        """Release all resources; always called."""
        return
