"""Stations that hear the channel: congestion control (DCC) and certificates depend on a load that is their own.

Virtual time goes in steps of 10 ms. In each, the stations that have a packet due decide by the channel busy ratio of
their last two windows of 100 ms, as live ones do; then packets pass the sending stacks, and the medium sends until the
end of the step. The windows of different stations begin at different times: nothing on the road lets them begin at one.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labconsole_v2x.choices import Generation, InclusionChoice
from labconsole_v2x.security.distribution import omitted_at
from labconsole_v2x.simulation.arrivals import Arrivals, airtimes_s, attackers_arrivals, sizes_of
from labconsole_v2x.simulation.medium import IdealMedium, SharedMedium, Transmissions
from labconsole_v2x.simulation.simulation_parameters import INSTANCE_HZ, MediumChoice, SimulationParameters
from labconsole_v2x.simulation.stack_queue import StackQueue
from labconsole_v2x.simulation.stack_timing import StackTiming
from labconsole_v2x.stations.cam_timing import CamTiming, RuleTiming
from labconsole_v2x.stations.channel import ChannelLoad, ReactiveDcc
from labconsole_v2x.stations.routes import Route, vehicle_route

_WINDOW = 10
"""Steps of a window of the channel busy ratio."""
_STEP_NS = ChannelLoad.INTERVAL_NS // _WINDOW
_SECOND_NS = 1_000_000_000


class SentPackets(NamedTuple):
    """The packets of a run in order of their generation up to the medium, arrays of one length."""

    arrivals: Arrivals
    """Those that were held back have the time at which they were due."""
    held_back: NDArray[np.bool_]
    """Due times at which DCC allowed no packet."""
    sent: Transmissions


def send_hearing(parameters: SimulationParameters, timing: StackTiming, random: np.random.Generator) -> SentPackets:
    """Let stations send that hear each other and attackers, for warm-up and duration."""
    return _ClosedLoop(parameters, timing, random).run()


class _Packet(NamedTuple):
    generated_s: float
    station: int
    instance: int
    certificate: bool
    held_back: bool
    airtime_s: float


class _Instance:
    """A CAM service of a benign station: its clock, its DCC, and when its certificate is due."""

    def __init__(
        self, number: int, station: int, route: Route, timing: CamTiming, phase: int, certificate_phase_ns: int
    ) -> None:
        self.number = number
        self.station = station
        self.timing = timing
        self.phase = phase
        """Of its station's windows."""
        self._route = route
        self._dcc = ReactiveDcc()
        self._omitted = 0
        self._certificate_due_ns = 0
        self._interval_ns = certificate_phase_ns
        """Until the certificate is due after it was sent; the first time shorter, so that instances are not in step."""

    def generates(self, ratio: float, *, dcc: bool) -> bool:
        """Whether the due time gives a CAM."""
        due_ns = self.timing.due_ns
        off_ms = self._dcc.state(ratio, due_ns).off_ms if dcc else 0
        return self.timing.generates(self._route.at(due_ns / 1e9), off_ms)

    def includes_certificate(self, policy: InclusionChoice, ratio: float) -> bool:
        """Whether the CAM of the due time carries the certificate; no station requests one."""
        match policy:
            case InclusionChoice.ALWAYS:
                return True
            case InclusionChoice.NEVER:
                return False
            case InclusionChoice.CONGESTION:
                included = self._omitted >= omitted_at(ratio)
                self._omitted = 0 if included else self._omitted + 1
                return included
            case InclusionChoice.ETSI:
                included = self.timing.due_ns >= self._certificate_due_ns
                if included:
                    self._certificate_due_ns = self.timing.due_ns + self._interval_ns
                    self._interval_ns = _SECOND_NS
                return included


class _BusyTime:
    """For how long at least one frame was on air until the end of each step."""

    def __init__(self) -> None:
        self._total_s = [0.0]
        self._until_s = 0.0
        self._on_air: list[tuple[float, float]] = []
        """Frames that outlast the step."""

    def end_step(self, heard: list[tuple[float, float]], end_s: float) -> None:
        """End a step with the busy times that began in it, in order; they may overlap."""
        busy_s = 0.0
        heard = [*self._on_air, *heard]
        for begun_s, ended_s in heard:
            begin_s, until_s = max(begun_s, self._until_s), min(ended_s, end_s)
            if until_s > begin_s:
                busy_s += until_s - begin_s
                self._until_s = until_s
        self._on_air = [(end_s, ended_s) for _, ended_s in heard if ended_s > end_s]
        self._total_s.append(self._total_s[-1] + busy_s)

    def ratio(self, phase: int) -> float:
        """The channel busy ratio over the last two whole windows that begin so many steps later than those of phase 0.

        As live stations measure it (TS 102 687, 4.2).
        """
        steps = len(self._total_s) - 1
        end = max(0, steps - (steps - phase) % _WINDOW)
        busy_s = self._total_s[end] - self._total_s[max(0, end - 2 * _WINDOW)]
        return busy_s * 1e9 / (2 * ChannelLoad.INTERVAL_NS)


class _ClosedLoop:
    def __init__(self, parameters: SimulationParameters, timing: StackTiming, random: np.random.Generator) -> None:
        self._parameters, self._timing, self._random = parameters, timing, random
        self._total_s = parameters.warm_up + parameters.duration
        self._airtime_s = _airtime_s(parameters)
        self._instances = list(_instances(parameters, random))
        self._packets = list(_attacks(parameters, timing, len(self._instances), random))
        self._due = [(one.timing.due_ns, number) for number, one in enumerate(self._instances)]
        """Heap of the next due time of each instance."""
        heapq.heapify(self._due)
        self._stacks = defaultdict[int, StackQueue](lambda: StackQueue(timing.sender.room))
        """By instance."""
        self._generated = [(packet.generated_s, index) for index, packet in enumerate(self._packets)]
        """Heap of the packets that have not come to their stack, as (time, index)."""
        self._ready: list[tuple[float, int]] = []
        """Heap of the packets whose stack is done with them, and that the medium does not have yet."""
        self._frames: list[int] = []
        """The packets that the medium has, in its order."""
        ideal = parameters.medium is MediumChoice.IDEAL
        self._medium = IdealMedium() if ideal else SharedMedium(parameters.radio(), timing.sender.room, random)
        self._busy = _BusyTime()

    def run(self) -> SentPackets:
        for step in range(math.ceil(self._total_s * 1e9 / _STEP_NS)):
            end_ns = (step + 1) * _STEP_NS
            self._generate(end_ns)
            self._send(end_ns / 1e9)
            self._busy.end_step(self._medium.run(end_ns / 1e9), end_ns / 1e9)
        self._send(math.inf)
        self._medium.run()
        return self._result()

    def _generate(self, end_ns: int) -> None:
        """Create the packets that are due before the end of the step, or hold them back."""
        until_ns = min(end_ns, round(self._total_s * 1e9))
        while (due := self._due[0])[0] < until_ns:
            due_ns, number = due
            instance = self._instances[number]
            ratio = self._busy.ratio(instance.phase)
            if instance.generates(ratio, dcc=self._parameters.dcc):
                self._create(instance, due_ns / 1e9, instance.includes_certificate(self._parameters.inclusion, ratio))
            elif instance.timing.held_back:
                self._packets.append(_Packet(due_ns / 1e9, instance.station, number, False, True, 0.0))
            instance.timing.advance()
            heapq.heapreplace(self._due, (instance.timing.due_ns, number))

    def _create(self, instance: _Instance, due_s: float, certificate: bool) -> None:
        generated_s = due_s + self._random.random() * self._timing.jitter_ms / 1e3
        if generated_s < self._total_s:
            heapq.heappush(self._generated, (generated_s, len(self._packets)))
            airtime_s = self._airtime_s[certificate]
            self._packets.append(_Packet(generated_s, instance.station, instance.number, certificate, False, airtime_s))

    def _send(self, until_s: float) -> None:
        """Let stacks pass on to the medium what they have done before `until_s`."""
        service_s = self._timing.sender.service_ms / 1e3
        while self._generated and self._generated[0][0] < until_s:
            generated_s, index = heapq.heappop(self._generated)
            stack = self._stacks[self._packets[index].instance]
            if not math.isnan(ready_s := stack.served_s(generated_s, service_s)):
                heapq.heappush(self._ready, (ready_s, index))
        frames = []
        while self._ready and self._ready[0][0] < until_s:
            frames.append(heapq.heappop(self._ready))
        if not frames:
            return
        packets = [self._packets[index] for _, index in frames]
        self._medium.add(
            [packet.station for packet in packets],
            [ready_s for ready_s, _ in frames],
            [packet.airtime_s for packet in packets],
        )
        self._frames += [index for _, index in frames]

    def _result(self) -> SentPackets:
        generated_s = np.array([packet.generated_s for packet in self._packets], np.float64)
        order = np.argsort(generated_s, kind="stable")
        sent = Transmissions(np.full(len(order), np.nan), np.zeros(len(order), np.bool_))
        by_frame = self._medium.transmissions()
        sent.begun_s[self._frames], sent.collided[self._frames] = by_frame.begun_s, by_frame.collided
        arrivals = Arrivals(
            np.array([packet.station for packet in self._packets], np.int64)[order],
            np.array([packet.instance for packet in self._packets], np.int64)[order],
            generated_s[order],
            np.array([packet.certificate for packet in self._packets], np.bool_)[order],
        )
        held_back = np.array([packet.held_back for packet in self._packets], np.bool_)[order]
        return SentPackets(arrivals, held_back, Transmissions(sent.begun_s[order], sent.collided[order]))


def _instances(parameters: SimulationParameters, random: np.random.Generator) -> Iterator[_Instance]:
    """The CAM services of benign stations, numbered as those of `arrivals.periodic_arrivals`."""
    rules = parameters.generation is Generation.RULES
    each = 1 if rules else math.ceil(parameters.rate / INSTANCE_HZ)
    phases = random.integers(_WINDOW, size=parameters.senders).tolist()
    for number in range(parameters.senders * each):
        route = vehicle_route(Random(int(random.integers(1 << 32)))) if rules else Route()
        offset, certificate_phase_ns = random.random(), round(random.random() * _SECOND_NS)
        rate = parameters.rate / each
        timing = RuleTiming(round(offset * 1e8)) if rules else CamTiming(round(offset * 1e9 / rate), rate)
        station = number % parameters.senders
        yield _Instance(number, 1 + station, route, timing, phases[station], certificate_phase_ns)


def _attacks(
    parameters: SimulationParameters, timing: StackTiming, instances: int, random: np.random.Generator
) -> Iterator[_Packet]:
    """The packets of attackers, who hold nothing back."""
    attacks = attackers_arrivals(parameters, timing.jitter_ms / 1e3, instances, random)
    airtime_s = airtimes_s(sizes_of(parameters, attacks)).tolist()
    columns = zip(*(column.tolist() for column in attacks), airtime_s, strict=True)
    for station, instance, generated_s, certificate, on_air_s in columns:
        yield _Packet(generated_s, station, instance, certificate, False, on_air_s)


def _airtime_s(parameters: SimulationParameters) -> tuple[float, float]:
    """The time on air of a benign packet with digest, and of one with certificate."""
    none = np.zeros(2)
    both = Arrivals(none.astype(np.int64), none.astype(np.int64), none, np.array([False, True]))
    digest_s, certificate_s = airtimes_s(sizes_of(parameters, both)).tolist()
    return digest_s, certificate_s
