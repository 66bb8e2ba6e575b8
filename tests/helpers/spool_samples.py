"""The samples and events in the spool files of a run, as a trial's evaluation reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.engine.spool import EventBlock, SampleBlock, SpoolReader
from labconsole.model.series import Event


@dataclass
class SpoolSamples:
    """`Samples` read from the spool files of a run; `events` come with them."""

    tables: dict[tuple[str, str], list[dict[str, NDArray[Any]]]] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    definitions: int = 1

    @classmethod
    def read(cls, folder: Path) -> SpoolSamples:
        samples = cls()
        for path in sorted(folder.glob("*.spool")):
            reader = SpoolReader(path)
            while blocks := reader.read_new():
                for block in blocks:
                    if isinstance(block, SampleBlock):
                        samples.tables.setdefault((block.series.name, block.role), []).append(block.columns)
                    elif isinstance(block, EventBlock):
                        samples.events.append(block.event)
            assert reader.damage is None
        samples.events.sort(key=lambda event: event.t_ns)
        return samples

    def roles(self, series: str) -> list[str]:
        return sorted(role for name, role in self.tables if name == series)

    def table(self, series: str, role: str) -> dict[str, NDArray[Any]]:
        blocks = self.tables[series, role]
        return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}

    def parts(
        self, series: str, role: str, numbers: Collection[int] | None = None
    ) -> Iterator[dict[str, NDArray[Any]]]:
        blocks = self.tables[series, role]
        yield from (blocks if numbers is None else (blocks[number] for number in sorted(numbers)))
