"""Follows the runs of the live trial: their frames, their stations, and what the newest benchmark says."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from labconsole.engine.protocol import LiveFrame
from labconsole.engine.queue import QueueState
from labconsole.errors import UserError
from labconsole.model.trial import Metric, Parameters
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from labconsole_ui.panels.trial_panel import PanelContext
from labconsole_ui.runtime.background import Background
from labconsole_ui.views.live.live_run import LiveRun
from labconsole_ui.widgets.message_bar import Message, Tone
from labconsole_v2x.benchmark.benchmark_parameters import BenchmarkParameters
from labconsole_v2x.choices import CurveChoice
from labconsole_v2x.live.live_parameters import LiveParameters
from labconsole_v2x.live.series import (
    ACCEPTED_CHANNEL,
    AGE_CHANNEL,
    DELIVERED_CHANNEL,
    RECEIVED_CHANNEL,
    SENT_CHANNEL,
)
from labconsole_v2x.panel.glance_card import Glance
from labconsole_v2x.panel.live_facts import Speed
from labconsole_v2x.panel.station_board import StationBoard
from labconsole_v2x.security.backends import Backend

DRAW_MS = 125
_LOSS_DELAY_NS = 500_000_000
"""Roles report their counts at different times: what was sent so long ago has arrived, or is lost."""
BENCHMARK = "v2x.benchmark"
_RATES = ("verify_decoded_rate", "raw_verify_rate", "sign_rate")
"""Those of `Speed`."""
Measured = tuple[Backend, CurveChoice]
"""What verifies and signs, and the curve of the tickets: a benchmark is of one of them. AWS-LC's signs by OpenSSL."""


class LiveMonitor(QObject):
    """`began`: another run; `drawn`: newer values to draw; `ended`: the run that was followed; `benchmarked`: the rates
    at which this computer verifies are known."""

    began = Signal()
    drawn = Signal()
    ended = Signal(int)
    benchmarked = Signal()

    def __init__(self, context: PanelContext, parent: QObject) -> None:
        super().__init__(parent)
        self._context = context
        self._background = Background(self)
        self._sent: deque[tuple[int, int]] = deque()
        self._parameters: LiveParameters | None = None
        self._results: Mapping[str, Metric] = {}
        self.run_id: int | None = None
        """The run that is followed, or was last."""
        self.running = False
        self.live: LiveRun | None = None
        self.board = StationBoard()
        self._speeds: Mapping[Measured, Speed] = {}
        self._due = QTimer(self)
        self._due.setSingleShot(True)
        self._due.setInterval(DRAW_MS)
        self._due.timeout.connect(self.drawn)
        context.bridge.live.connect(self._take)
        context.bridge.finished.connect(self._finished)

    def read_benchmark(self) -> None:
        """Read, in the background, what the newest benchmarks of the database say."""
        path = self._context.bridge.queue.store.path
        self._background.submit(partial(newest_speeds, path), self._set_speeds, self._say)

    def speed(self, parameters: LiveParameters) -> Speed:
        """What one core verifies and signs a second, by the newest benchmarks with these backends and this curve."""
        verifying = self._speeds.get((parameters.verification, parameters.curve), Speed())
        backends = (
            (parameters.signing, Backend.AWS_LC) if parameters.signing is Backend.OPENSSL else (parameters.signing,)
        )
        signing = (self._speeds.get((backend, parameters.curve), Speed()).sign for backend in backends)
        return replace(verifying, sign=next(filter(None, signing), None))

    def switch(self, number: int, *, on: bool) -> None:
        """Stop or start a station of the run in progress. Raises UserError where it is over."""
        if self.run_id is None or not self.running:
            raise UserError("No run is in progress: start one first.")
        name = "start-station" if on else "stop-station"
        self._context.bridge.queue.command(self.run_id, name, {"station": number}, sent_by="window")
        self.board.switch(number, on=on)
        self.drawn.emit()

    def glance(self) -> Glance:
        """The figures of this moment; those of the whole run once they are known."""
        parameters = self._parameters or LiveParameters()
        verifies, capacity = parameters.security.verifies, self.speed(parameters).verify
        receivers = parameters.receiving_stations
        if self._results:
            wanted = ("accept_rate", "latency_p99", "packet_loss")
            rate, latency, loss = (self._results.get(name) for name in wanted)
            return Glance(
                verified=None if rate is None else rate.value / receivers,
                latency_p99_ms=None if latency is None else latency.value,
                loss=None if loss is None else loss.value,
                capacity=capacity,
                verifies=verifies,
                receivers=receivers,
                doubt="" if latency is None else latency.not_judged,
                run_id=self.run_id,
                uncertainty_ms=0.0 if latency is None else latency.uncertainty,
            )
        live, frame = self.live, None if self.live is None else self.live.latest
        if live is None or frame is None or frame.begin_ns is None:
            return Glance(capacity=capacity)
        accepted = live.figures(ACCEPTED_CHANNEL.name).rate if ACCEPTED_CHANNEL.name in frame.channels else None
        ages = live.latencies.get(AGE_CHANNEL.name, {}).get("p99")
        age_ns = ages.points(0)[1][-1] if ages is not None and len(ages.points(0)[1]) else float("nan")
        return Glance(
            verified=None if accepted is None else accepted / receivers,
            latency_p99_ms=None if age_ns != age_ns else age_ns / 1e6,
            loss=self._loss(frame),
            capacity=capacity,
            verifies=verifies,
            receivers=receivers,
        )

    def _loss(self, frame: LiveFrame) -> float | None:
        """Share of what was sent until a moment ago that no receiver has accepted, in %."""
        if self._parameters is None:
            return None
        sent = next((sent for t_ns, sent in reversed(self._sent) if t_ns <= frame.t_ns - _LOSS_DELAY_NS), 0)
        expected = sent * self._parameters.receptions_a_message
        if not expected or RECEIVED_CHANNEL.name not in frame.channels:
            return None
        delivered = frame.channels[DELIVERED_CHANNEL.name].count if DELIVERED_CHANNEL.name in frame.channels else 0
        return max(0.0, 1 - delivered / expected) * 100

    def _take(self, run_id: int, frame: LiveFrame) -> None:
        if not self.running or run_id != self.run_id:
            items = [item for item in self._context.bridge.queue.items if item.run_id == run_id]
            if not items or items[0].kind != self._context.trial.kind or items[0].state is not QueueState.RUNNING:
                return
            self._begin(run_id)
        assert self.live is not None
        self.live.add_frame(frame)
        self.board.take(frame)
        if SENT_CHANNEL.name in frame.channels:
            self._sent.append((frame.t_ns, frame.channels[SENT_CHANNEL.name].count))
            while len(self._sent) > 2 and self._sent[1][0] < frame.t_ns - 4 * _LOSS_DELAY_NS:
                self._sent.popleft()
        if not self._due.isActive():
            self._due.start()

    def _begin(self, run_id: int) -> None:
        self.run_id, self.running = run_id, True
        self.live, self.board = LiveRun(self._context.trial.live), StationBoard()
        self._sent.clear()
        self._parameters, self._results = None, {}
        path, model = self._context.bridge.queue.store.path, self._context.trial.parameters
        self._background.submit(partial(_parameters_of, path, run_id, model), self._set_parameters, self._say)
        self.began.emit()

    def _finished(self, run_id: int, status: RunStatus) -> None:
        items = [item for item in self._context.bridge.queue.items if item.run_id == run_id]
        if items and items[0].kind == BENCHMARK:
            self.read_benchmark()
        if run_id == self.run_id and self.running:
            self.running = False
            path = self._context.bridge.queue.store.path
            self._background.submit(partial(_results_of, path, run_id), self._set_results, self._say)
            self.drawn.emit()
            self.ended.emit(run_id)

    def _say(self, sentence: str) -> None:
        self._context.show_message(Message(Tone.BAD, sentence))

    def _set_parameters(self, parameters: Parameters) -> None:
        assert isinstance(parameters, LiveParameters)
        self._parameters = parameters

    def _set_results(self, found: tuple[int, Mapping[str, Metric]]) -> None:
        run_id, results = found
        if run_id == self.run_id and not self.running:
            self._results = results
            self.drawn.emit()

    def _set_speeds(self, speeds: Mapping[Measured, Speed]) -> None:
        if speeds:
            self._speeds = speeds
            self.benchmarked.emit()


def newest_speeds(database: Path) -> Mapping[Measured, Speed]:
    """What one core verifies and signs, by the newest finished benchmarks. Raises StoreError."""
    speeds: dict[Measured, Speed] = {}
    with Reader(database) as reader:
        for row in reader.runs(kind=BENCHMARK, metrics=_RATES):
            if row.status is RunStatus.FINISHED and set(_RATES) <= row.metrics.keys():
                measured = BenchmarkParameters.of_stored(row.parameters)
                speed = Speed(*(row.metrics[name].value for name in _RATES))
                speeds.setdefault((measured.backend, measured.curve), speed)
    return speeds


def _results_of(database: Path, run_id: int) -> tuple[int, Mapping[str, Metric]]:
    with Reader(database) as reader:
        return run_id, reader.run(run_id).row.metrics


def _parameters_of(database: Path, run_id: int, model: type[Parameters]) -> Parameters:
    with Reader(database) as reader:
        return model.of_stored(reader.run(run_id).row.parameters)
