"""Samples of live runs, built by hand from rows whose losses and times are known. Times are in ms since T0."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.model.series import MACHINE, RESOURCES, Series
from labconsole.model.trial import Evaluation, Event, Level
from labconsole_v2x.live.live_evaluation import evaluate
from labconsole_v2x.live.live_parameters import LiveParameters
from labconsole_v2x.live.series import QUEUE, RECEIVED, SENT, STATIONS
from labconsole_v2x.stations.receiving import REASONS, ReceivedPacket
from labconsole_v2x.stations.transmission import SentPacket

T0_NS = 5_000_000_000_000
MS, US = 1_000_000, 1_000
A, B, C, ROADSIDE, OTHER = 0xA00000000001, 0xB00000000002, 0xC00000000003, 0xD00000000004, 0xE00000000005
"""MAC addresses of stations 1, 2 and 3, of the roadside station, and of a station of another run."""
STATION_OF = {A: 1, B: 2, C: 3, ROADSIDE: 0}


def at(ms: float) -> int:
    """A time of the run's clock."""
    return T0_NS + round(ms * MS)


def sent(
    source: int, due: float, *, late: float = 0.1, sign_us: float = 50, size: int = 180, certificate: bool = False
) -> SentPacket:
    """A CAM; its generation time is its due time, so that this is its identity."""
    identity = round(due * 1000)
    row = (at(due), at(due + late), round(sign_us * US), size, int(certificate))
    return SentPacket(STATION_OF[source], source, identity, *row)


def received(
    source: int,
    due: float,
    *,
    after: float = 1.0,
    done: float = 0.5,
    reason: str = "accepted",
    receiver: int = 0,
    waited: bool = False,
    verify_us: float = 80,
    content: int = 90,
    age: float = 1.5,
) -> ReceivedPacket:
    """The CAM that was due at `due`, read `after` later and processed `done` after that."""
    number, accepted = REASONS.index(reason), reason == "accepted"
    read = due + after
    return ReceivedPacket(
        receiver,
        source,
        0 if reason == "receiver queue full" else round(due * 1000),
        at(read),
        at(read),
        round(verify_us * US),
        at(read + done),
        round(age * MS) if accepted else 0,
        180,
        content if accepted else 0,
        number,
        int(waited),
    )


@dataclass
class Tables:
    """`Samples` in memory."""

    tables: dict[tuple[str, str], dict[str, NDArray[Any]]] = field(default_factory=dict)
    definitions: int = 1

    def roles(self, series: str) -> list[str]:
        return sorted(role for name, role in self.tables if name == series)

    def table(self, series: str, role: str) -> dict[str, NDArray[Any]]:
        return self.tables[series, role]

    def parts(
        self, series: str, role: str, numbers: Collection[int] | None = None
    ) -> Iterator[dict[str, NDArray[Any]]]:
        yield self.tables[series, role]

    def add(self, series: Series, role: str, rows: Sequence[Sequence[Any]]) -> None:
        """Add the rows of a role, columns in the series' order."""
        columns = zip(*rows, strict=True) if rows else [()] * len(series.columns)
        self.tables[series.name, role] = {
            column.name: np.array(values, column.numpy_type)
            for column, values in zip(series.columns, columns, strict=True)
        }


def samples(
    packets: Sequence[SentPacket],
    receptions: Mapping[str, Sequence[ReceivedPacket]] | Sequence[ReceivedPacket] = (),
    *,
    queue: Mapping[str, Sequence[tuple[float, int]]] | None = None,
    usage: Mapping[str, Sequence[tuple[float, float, int]]] | None = None,
    machine: Sequence[tuple[float, int, int, int, int]] = (),
) -> Tables:
    """Samples with these rows: those received by role (of `receiver` alone), the queue's length, CPU and memory."""
    tables = Tables()
    by_role = receptions if isinstance(receptions, Mapping) else {"receiver": receptions}
    stations = [(number, 0, source, number, 0, 0) for source, number in STATION_OF.items()]
    tables.add(STATIONS, "stations-1-3", stations)
    tables.add(SENT, "stations-1-3", packets)
    for role, rows in by_role.items():
        tables.add(RECEIVED, role, rows)
    for role, readings in (queue or {}).items():
        tables.add(QUEUE, role, [(at(ms), length) for ms, length in readings])
    for role, used in (usage or {}).items():
        tables.add(RESOURCES, role, [(at(ms), cpu, rss) for ms, cpu, rss in used])
    if machine:
        tables.add(MACHINE, "worker", [(at(ms), *spent) for ms, *spent in machine])
    return tables


EVENTS = (Event(T0_NS, "worker", Level.INFO, "T0", "", {"begin_ns": T0_NS}),)


def parameters(**settings: Any) -> LiveParameters:
    """A second of warm-up and two that count, of two stations."""
    return LiveParameters(**{"senders": 2, "warm_up": 1.0, "duration": 2.0, **settings})


def evaluated(tables: Tables, **settings: Any) -> Evaluation:
    """The evaluation of a run with these samples."""
    return evaluate(parameters(**settings), tables, EVENTS)


def figures(tables: Tables, **settings: Any) -> dict[str, float]:
    """Its metrics by name, as `named` has them."""
    return named(evaluated(tables, **settings))


def named(evaluation: Evaluation) -> dict[str, float]:
    """The metrics by name, with the value of a label behind it: `lost receiver queue`."""
    return {" ".join((metric.name, *metric.labels.values())): metric.value for metric in evaluation.metrics}
