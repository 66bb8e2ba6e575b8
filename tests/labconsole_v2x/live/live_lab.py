"""Live runs of stations in tests: the real trial and real sockets, on a multicast group of the run's own.

Roles are threads of the test process; a test about their processes passes `PROCESSES`.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.engine.launcher import Launcher, LocalLauncher
from labconsole.engine.queue import QueueState
from labconsole.engine.spool import AttachmentBlock, SpoolReader
from labconsole.store.records import RunDetail
from labconsole_v2x.live.live_parameters import LiveParameters
from labconsole_v2x.live.live_trial import LiveTrial
from labconsole_v2x.panel.station_board import StationBoard
from labconsole_v2x.stations.capture import ethernet_frame
from labconsole_v2x.stations.transports import LOOPBACK_ADDRESS, TransportKind, TransportSettings, open_transport
from tests.helpers import trial_lab
from tests.helpers.practice import Bench
from tests.helpers.repeated_runs import repeated
from tests.helpers.role_threads import RoleThreads
from tests.helpers.udp_ports import free_udp_port

SHORT = {"senders": 3, "rate": 10.0, "warm_up": 0.5, "duration": 1.0}
"""A run of 1.5 s, in which three stations send 15 CAMs each."""
DISTURBED_MS = 100.0
"""An interval of 10 Hz: later CAMs count in another second than that in which they were due."""
UNWATCHED_HZ = 4.0
"""Live frames a second where a test does not watch: at 20 they are a fifth of the CPU time of a short run."""
CAPTURE = "capture.pcapng"
PROCESSES = LocalLauncher()
"""Starts roles as processes: for tests about these, and for roles that are killed or load a token."""


def own_transport() -> dict[str, Any]:
    """A multicast group and a port that no other run uses: tests run in parallel."""
    group = ".".join(("239", *(str(random.SystemRandom().randrange(1, 255)) for _ in range(3))))
    return {"group": group, "port": free_udp_port()}


@dataclass(frozen=True)
class Outcome(trial_lab.Outcome[LiveParameters]):
    """The result of a live run."""

    def labelled(self, name: str) -> dict[str, float]:
        """Metrics with one label by its value."""
        found = [metric for metric in self.evaluation.metrics if metric.name == name and metric.labels]
        return {next(iter(metric.labels.values())): metric.value for metric in found}

    def column(self, series: str, name: str, *, roadside: bool = False) -> NDArray[Any]:
        """A column of a series, of all roles; what the roadside station has sent only with `roadside`."""
        tables = [self.samples.table(series, role) for role in self.samples.roles(series)]
        kept = [table["station"] > 0 if "station" in table and not roadside else ... for table in tables]
        return np.concatenate([table[name][rows] for table, rows in zip(tables, kept, strict=True)])

    def live(self, channel: str) -> int:
        """The last count of a live channel."""
        return self.frame.channels[channel].count if channel in self.frame.channels else 0

    @property
    def lateness_ms(self) -> float:
        """The longest time that a CAM was sent after it was due."""
        tables = [self.samples.table("sent", role) for role in self.samples.roles("sent")]
        return max((float(np.max(one["sent_ns"] - one["due_ns"], initial=0)) / 1e6 for one in tables), default=0.0)

    @property
    def too_late(self) -> int:
        """CAMs that were due, and that this computer was too slow to send."""
        return self.too_late_of("")

    def too_late_of(self, roles: str) -> int:
        """Those of the roles whose names begin so."""
        return sum(event.data["number"] for event in self.events_named("too late") if event.source.startswith(roles))

    @property
    def due(self) -> int:
        """CAMs of stations that were due: this computer has sent them, or was too slow."""
        return round(self.figures["sent"]) + self.too_late_of("stations")

    @property
    def begin_ns(self) -> int:
        """T0."""
        (event,) = self.events_named("T0")
        return int(event.data["begin_ns"])

    def capture(self, path: Path, role: str = "receiver") -> Path:
        """Write what a role has captured into this file."""
        path.write_bytes(b"".join(_pieces(self.folder / f"{role}.spool")))
        return path


def _pieces(spool: Path) -> list[bytes]:
    reader, found = SpoolReader(spool), []
    while blocks := reader.read_new():
        found += [one.content for one in blocks if isinstance(one, AttachmentBlock) and one.name == CAPTURE]
    return found


class LiveLab(trial_lab.TrialLab[LiveParameters, Outcome]):
    """One run; `during` is called on another thread once it has begun (T0)."""

    trial = LiveTrial()
    outcome = Outcome
    roles = RoleThreads

    def run(self, **settings: Any) -> Outcome:
        """Run a short scenario with these parameters."""
        return super().run(**{**own_transport(), **SHORT, **settings})

    def kill(self, role: str) -> None:
        """kill -9."""
        os.kill(self.pid(role), signal.SIGKILL)

    def command(self, name: str, station: int, **others: int) -> None:
        """What the operator sends into the run."""
        parameters = {"station": station, **others}
        self.context.on_message(
            {"t": "command", "name": name, "parameters": parameters, "role": "", "sent_by": "window"}
        )

    def sent_by(self, station: int) -> int:
        """The CAMs of a station, as it was last reported."""
        board = StationBoard()
        board.take(self.context.frame())
        return board.stations[station].sent if station in board.stations else 0

    @property
    def over(self) -> bool:
        """Whether the run is over."""
        return self._over.is_set()

    def until_sent(self, station: int, count: int) -> None:
        """Wait until a station has sent so many CAMs, or the run is over."""
        while self.sent_by(station) < count and not self._over.wait(0.01):
            pass

    def _await_begin(self) -> bool:
        while not self._over.wait(0.005):
            if self.context.frame().begin_ns is not None:
                return True
        return False


def run(folder: Path, *, launcher: Launcher | None = None, **settings: Any) -> Outcome:
    """A short run; `folder` is created."""
    return LiveLab(folder, launcher=launcher, live_hz=UNWATCHED_HZ).run(**settings)


def run_on_a_busy_channel(folder: Path, **scenario: Any) -> Outcome:
    """A short run on a multicast group where others send long frames, which take more than the whole channel."""
    transport = own_transport()

    def send_frames(lab: LiveLab) -> None:
        settings = TransportSettings(TransportKind.MULTICAST, LOOPBACK_ADDRESS, **transport)
        other = open_transport(settings, receiver=False)
        frame = ethernet_frame(bytes(2400), bytes.fromhex("020000000001"))
        while not lab.wait(0.02):
            for _ in range(10):
                other.send(frame)
        other.close()

    return LiveLab(folder, live_hz=UNWATCHED_HZ, during=send_frames).run(**transport, **scenario)


def is_late(outcome: Outcome) -> bool:
    """Whether a CAM was sent so late that it counts in another second, or was not sent."""
    return outcome.lateness_ms >= DISTURBED_MS or is_incomplete(outcome)


def is_starved(outcome: Outcome) -> bool:
    """Whether more CAMs came too late to be sent than were sent: figures of the time that counts may be missing."""
    return outcome.too_late > outcome.figures["sent"]


def is_incomplete(outcome: Outcome) -> bool:
    """Whether a CAM came too late to be sent."""
    return outcome.too_late > 0


def steady_run(run: Callable[[], Outcome], disturbed: Callable[[Outcome], bool] = is_late) -> Outcome:
    """The outcome of `run`, which is repeated twice at most where a busy computer has disturbed it, as a queue does."""
    outcomes: list[Outcome] = []

    def attempt(number: int) -> Outcome:
        if number:
            shutil.rmtree(outcomes[-1].folder)
        outcomes.append(run())
        return outcomes[-1]

    return repeated(attempt, lambda outcome: outcome.failure is not None or not disturbed(outcome))


def run_in_queue(bench: Bench, **settings: Any) -> RunDetail:
    """A short run in a queue, stored; it is not repeated, as one is after which the computer was found to be busy."""
    [run_id] = bench.submit({**SHORT, **own_transport(), **settings}, kind="v2x.live")
    bench.pump_until(lambda: any(item.state is QueueState.RUNNING for item in bench.queue.items))
    bench.queue.pause()
    bench.pump_until(lambda: any(number == run_id for number, _ in bench.listener.ends))
    return bench.detail(run_id)


def dissected(capture: Path, *fields: str) -> list[dict[str, str]]:
    """What tshark reads in each packet: the first value of each field."""
    named = [part for field in fields for part in ("-e", field)]
    command = ["tshark", "-n", "-r", str(capture), "-T", "fields", "-E", "occurrence=f", *named]
    rows = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [dict(zip(fields, row.split("\t"), strict=True)) for row in rows]
