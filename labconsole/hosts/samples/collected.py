"""Samples that were recorded on other hosts: where they are brought to, and their times by the console's clock.

A role on a host records by a clock that was set by the offset before the run; what the offset changed since, by the
comparisons during and after it, is taken from its times when they are stored.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labconsole.clock_comparison import host_offsets
from labconsole.engine.spool import Block, EventBlock, SampleBlock
from labconsole.model.series import EVENT_TIMES, Event
from labconsole.paths import hosts_dir

LOCAL = "local-"
"""With what the names of hosts begin that a run starts on this computer."""
_FOLDER = "hosts"


def recorded_folder(host: str) -> Path:
    """Where the agent of a host keeps what its roles record, a folder for each run."""
    return hosts_dir() / "runs" / host


def copy_of_local_hosts(run: str, spool: Path) -> list[Path]:
    """Copy what local hosts that are gone have left of a run into its spool directory; returns the folders they left.

    Raises OSError: the disk is full.
    """
    left = sorted(recorded_folder("").glob(f"{LOCAL}*/{run}"))
    for folder in left:
        target = collected_folder(spool, folder.parent.name)
        target.mkdir(parents=True, exist_ok=True)
        for file in folder.glob("*.spool"):
            shutil.copyfile(file, target / file.name)
    return left


def collected_folder(spool: Path, host: str) -> Path:
    """Where the files of a host are brought to, in the spool directory of their run."""
    return spool / _FOLDER / host


def collected(spool: Path) -> Iterator[tuple[str, Path]]:
    """The hosts whose files were brought into the spool directory of a run, each with its folder."""
    for folder in sorted((spool / _FOLDER).glob("*")):
        yield folder.name, folder


class HostClock:
    """The times of one host by the console's clock."""

    def __init__(self, events: Sequence[Event], host: str) -> None:
        """`events` are those of the run: without a comparison of this host, times stay as they are."""
        offsets = host_offsets(events).get(host, [])
        self._at_ns = np.array([one.receiver_ns for one in offsets], np.int64)
        self._offsets_ns = np.array([one.offset_ns for one in offsets], np.int64)

    def corrected(self, block: Block) -> Block:
        """The block with its times by the console's clock; those of 0 or less mean none."""
        if not len(self._at_ns):
            return block
        if isinstance(block, EventBlock):
            event = block.event
            times = {key: self._time(event.data[key]) for key in EVENT_TIMES if key in event.data}
            return replace(block, event=replace(event, t_ns=self._time(event.t_ns), data={**event.data, **times}))
        if not isinstance(block, SampleBlock):
            return block
        names = [column.name for column in block.series.columns if column.by_clock]
        return replace(block, columns={**block.columns, **{name: self._times(block.columns[name]) for name in names}})

    def _time(self, recorded_ns: int) -> int:
        return int(self._times(np.array([recorded_ns], np.int64))[0])

    def _times(self, recorded_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        set_by_ns = self._offsets_ns[0]
        since_ns = (recorded_ns + set_by_ns - self._at_ns[0]).astype(np.float64)
        changes = (self._offsets_ns - set_by_ns).astype(np.float64)
        change_ns = np.interp(since_ns, (self._at_ns - self._at_ns[0]).astype(np.float64), changes)
        return np.where(recorded_ns > 0, recorded_ns - np.rint(change_ns).astype(np.int64), recorded_ns)
