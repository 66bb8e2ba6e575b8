"""The simulated testbed: packets from their generation over the radio channel to the receiver's verdict."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labconsole_v2x.simulation.arrivals import Arrivals, airtimes_s, generated, sizes_of
from labconsole_v2x.simulation.closed_loop import SentPackets, send_hearing
from labconsole_v2x.simulation.medium import Transmissions, shared_medium
from labconsole_v2x.simulation.simulation_parameters import MediumChoice, SimulationParameters
from labconsole_v2x.simulation.stack_queue import served_s
from labconsole_v2x.simulation.stack_timing import StackTiming


class Fate(IntEnum):
    """The result for a packet, by the number under which it is recorded."""

    ACCEPTED = 0
    REJECTED = 1
    """An attacker's, by the receiver."""
    SENDER_FULL = 2
    COLLIDED = 3
    RECEIVER_FULL = 4
    HELD_BACK = 5
    """Never generated: DCC allowed none at its due time."""


class SimulatedPackets(NamedTuple):
    """All packets of a run in order of their generation, arrays of one length; times in s of the virtual clock."""

    arrivals: Arrivals
    attacker: NDArray[np.bool_]
    size: NDArray[np.int64]
    """Octets of the GeoNetworking packets."""
    airtime_s: NDArray[np.float64]
    sent_s: NDArray[np.float64]
    """When its frame began on air; not a number for one that was never sent."""
    service_s: NDArray[np.float64]
    """The receiver's time for it."""
    done_s: NDArray[np.float64]
    """When the receiver had processed it; not a number for one that was lost."""
    fate: NDArray[np.int64]
    """Numbers of `Fate`."""


def simulate(parameters: SimulationParameters, timing: StackTiming, random: np.random.Generator) -> SimulatedPackets:
    """Let all stations send for warm-up and duration, to one receiver."""
    send = send_hearing if parameters.hears_channel else _send_deaf
    arrivals, held_back, sent = send(parameters, timing, random)
    attacker = arrivals.station > parameters.senders
    size = sizes_of(parameters, arrivals)
    airtime_s = airtimes_s(size)
    service_ms = np.full(len(size), timing.receiver.service_ms[parameters.security])
    if parameters.attacking:
        service_ms[attacker] = timing.attack_ms(parameters.security, parameters.attack)
    heard_s = np.where(sent.collided, np.nan, sent.begun_s + airtime_s)
    done_s = np.full(len(size), np.nan)
    heard = _by_time(heard_s)
    done_s[heard] = served_s(heard_s[heard], service_ms[heard] / 1e3, timing.receiver.room, parameters.receiver_cores)
    fate = np.where(attacker, Fate.REJECTED, Fate.ACCEPTED)
    fate[np.isnan(done_s)] = Fate.RECEIVER_FULL
    fate[np.isnan(sent.begun_s)] = Fate.SENDER_FULL
    fate[sent.collided] = Fate.COLLIDED
    fate[held_back] = Fate.HELD_BACK
    return SimulatedPackets(arrivals, attacker, size, airtime_s, sent.begun_s, service_ms / 1e3, done_s, fate)


def _by_time(times_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """The indices of those that have a time, in its order."""
    known = np.flatnonzero(~np.isnan(times_s))
    return known[np.argsort(times_s[known], kind="stable")]


def _send_deaf(parameters: SimulationParameters, timing: StackTiming, random: np.random.Generator) -> SentPackets:
    """Let stations send that do not change by what they hear: each stage has all packets before the next one begins."""
    arrivals = generated(parameters, timing.jitter_ms / 1e3, random)
    ready_s = _through_sending_stacks(arrivals, timing.sender.service_ms / 1e3, timing.sender.room)
    airtime_s = airtimes_s(sizes_of(parameters, arrivals))
    sent = _over_the_medium(parameters, arrivals, ready_s, airtime_s, timing.sender.room, random)
    return SentPackets(arrivals, np.zeros(len(airtime_s), np.bool_), sent)


def _through_sending_stacks(arrivals: Arrivals, service_s: float, room: int) -> NDArray[np.float64]:
    """When each packet is ready for the medium; not a number for one that found no room in its instance's stack."""
    ready_s = np.full(len(arrivals.station), np.nan)
    by_instance = np.argsort(arrivals.instance, kind="stable")
    ends = np.flatnonzero(np.diff(arrivals.instance[by_instance])) + 1
    for own in np.split(by_instance, ends):
        ready_s[own] = served_s(arrivals.generated_s[own], np.full(len(own), service_s), room)
    return ready_s


def _over_the_medium(
    parameters: SimulationParameters,
    arrivals: Arrivals,
    ready_s: NDArray[np.float64],
    airtime_s: NDArray[np.float64],
    room: int,
    random: np.random.Generator,
) -> Transmissions:
    sent = Transmissions(np.full(len(ready_s), np.nan), np.zeros(len(ready_s), np.bool_))
    ready = _by_time(ready_s)
    if parameters.medium is MediumChoice.IDEAL:
        sent.begun_s[ready] = ready_s[ready]
        return sent
    frames = arrivals.station[ready], ready_s[ready], airtime_s[ready]
    radio = parameters.radio()
    sent.begun_s[ready], sent.collided[ready] = shared_medium(*frames, radio=radio, room=room, random=random)
    return sent
