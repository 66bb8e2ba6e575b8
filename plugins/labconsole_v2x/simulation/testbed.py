"""The simulated testbed: packets from their generation over the radio channel to the receiver's verdict."""

from __future__ import annotations

from collections import deque
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labconsole_v2x.choices import Attack
from labconsole_v2x.simulation.medium import BEST_EFFORT, Transmissions, shared_medium
from labconsole_v2x.simulation.simulation_parameters import MediumChoice, SimulationParameters
from labconsole_v2x.simulation.stack_timing import StackTiming
from labconsole_v2x.stations.channel import airtime_us
from labconsole_v2x.stations.sending import SecurityMode

INSTANCE_HZ = 10.0
"""Higher rates are several instances of at most this rate: the source's 100 Hz are ten of 10 Hz."""


class Fate(IntEnum):
    """The result for a packet, by the number under which it is recorded."""

    ACCEPTED = 0
    REJECTED = 1
    """An attacker's, by the receiver."""
    SENDER_FULL = 2
    COLLIDED = 3
    RECEIVER_FULL = 4


class Arrivals(NamedTuple):
    """Packets in order of their generation, arrays of one length."""

    station: NDArray[np.int64]
    """From 1 on."""
    instance: NDArray[np.int64]
    """A number for each instance of each station: programs of their own, as in the source's boxes."""
    generated_s: NDArray[np.float64]
    certificate: NDArray[np.bool_]
    """Whether a packet carries the whole certificate: one of each instance each second."""


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
    arrivals = _arrivals(parameters, timing.jitter_ms / 1e3, random)
    attacker = arrivals.station > parameters.senders
    size = _sizes(parameters, arrivals, attacker)
    sizes, of_size = np.unique(size, return_inverse=True)
    airtime_s = np.array([airtime_us(octets) / 1e6 for octets in sizes.tolist()])[of_size]
    ready_s = _through_sending_stacks(arrivals, timing.sender.service_ms / 1e3, timing.sender.room)
    sent = _over_the_medium(parameters, arrivals, ready_s, airtime_s, timing.sender.room, random)
    service_ms = np.full(len(size), timing.receiver.service_ms[parameters.security])
    if parameters.attacking:
        service_ms[attacker] = timing.receiver.attack_ms[parameters.attack]
    heard_s = np.where(sent.collided, np.nan, sent.begun_s + airtime_s)
    done_s = np.full(len(size), np.nan)
    heard = _by_time(heard_s)
    done_s[heard] = served_s(heard_s[heard], service_ms[heard] / 1e3, timing.receiver.room)
    fate = np.where(attacker, Fate.REJECTED, Fate.ACCEPTED)
    fate[np.isnan(done_s)] = Fate.RECEIVER_FULL
    fate[np.isnan(sent.begun_s)] = Fate.SENDER_FULL
    fate[sent.collided] = Fate.COLLIDED
    return SimulatedPackets(arrivals, attacker, size, airtime_s, sent.begun_s, service_ms / 1e3, done_s, fate)


def _by_time(times_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """The indices of those that have a time, in its order."""
    known = np.flatnonzero(~np.isnan(times_s))
    return known[np.argsort(times_s[known], kind="stable")]


# Generation


def _arrivals(parameters: SimulationParameters, jitter_s: float, random: np.random.Generator) -> Arrivals:
    """The packets of benign stations, and those of attackers with the highest numbers."""
    total_s = parameters.warm_up + parameters.duration
    benign = periodic_arrivals(parameters.senders, parameters.rate, total_s, jitter_s, random)
    if not parameters.attacking:
        return benign
    attacks = periodic_arrivals(parameters.attacking, parameters.attack_rate, total_s, jitter_s, random)
    beyond = benign.instance.max(initial=-1) + 1
    attacks = attacks._replace(station=attacks.station + parameters.senders, instance=attacks.instance + beyond)
    both = [np.concatenate(columns) for columns in zip(benign, attacks, strict=True)]
    order = np.argsort(both[2], kind="stable")
    return Arrivals(*(column[order] for column in both))


def periodic_arrivals(
    stations: int, rate: float, duration_s: float, jitter_s: float, random: np.random.Generator
) -> Arrivals:
    """The packets of `stations` at `rate` Hz each.

    Each instance begins anywhere in its first period; each packet is later than its period by up to `jitter_s`,
    uniformly distributed. Certificates of different instances are not in step with each other.
    """
    instances = -(-rate // INSTANCE_HZ)
    period_s = instances / rate
    count = int(stations * instances)
    each = int(np.ceil(duration_s / period_s))
    due = random.random((count, 1)) * period_s + period_s * np.arange(each)
    generated = due + random.random((count, each)) * jitter_s
    generated.sort(axis=1)
    seconds = np.floor(generated + random.random((count, 1)))
    certificate = np.diff(seconds, axis=1, prepend=-1.0) > 0
    instance = np.repeat(np.arange(count), each)
    order = np.argsort(generated, axis=None, kind="stable")
    inside = order[generated.ravel()[order] < duration_s]
    station = 1 + instance[inside] % stations
    return Arrivals(station, instance[inside], generated.ravel()[inside], certificate.ravel()[inside])


def _sizes(parameters: SimulationParameters, arrivals: Arrivals, attacker: NDArray[np.bool_]) -> NDArray[np.int64]:
    size = np.where(arrivals.certificate, parameters.size_certificate, parameters.size_digest)
    if parameters.security is SecurityMode.NONE:
        size[:] = parameters.size_unsecured
    if parameters.attack is Attack.NO_SIGNATURE:
        size[attacker] = parameters.size_unsecured
    return size


# Stacks and medium


def served_s(arrived_s: NDArray[np.float64], service_s: NDArray[np.float64], room: int) -> NDArray[np.float64]:
    """When each packet has been served by a finite queue with one server, in s; not a number for one without room.

    `arrived_s` ascends; `room` counts the packets that wait and the one in service.
    """
    done: deque[float] = deque()
    last, served = 0.0, []
    for arrived, service in zip(arrived_s.tolist(), service_s.tolist(), strict=True):
        while done and done[0] <= arrived:
            done.popleft()
        if len(done) >= room:
            served.append(np.nan)
            continue
        last = max(last, arrived) + service
        done.append(last)
        served.append(last)
    return np.array(served)


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
    sent.begun_s[ready], sent.collided[ready] = shared_medium(*frames, category=BEST_EFFORT, room=room, random=random)
    return sent
