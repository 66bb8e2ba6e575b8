"""The simulated testbed: packets from their generation over the radio channel to the receiver's verdict."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labconsole_v2x.choices import Attack
from labconsole_v2x.simulation.arrivals import Arrivals, periodic_arrivals, together
from labconsole_v2x.simulation.medium import BEST_EFFORT, Transmissions, shared_medium
from labconsole_v2x.simulation.queueing import served_s
from labconsole_v2x.simulation.simulation_parameters import MediumChoice, SimulationParameters
from labconsole_v2x.stations.channel import airtime_us
from labconsole_v2x.stations.sending import SecurityMode


class Fate(IntEnum):
    """What became of a packet, by the number under which it is recorded."""

    ACCEPTED = 0
    REJECTED = 1
    """An attacker's, by the receiver."""
    SENDER_FULL = 2
    COLLIDED = 3
    RECEIVER_FULL = 4


class SimulatedPackets(NamedTuple):
    """All packets of a run in order of their generation, arrays of one length; times in s of the virtual clock."""

    arrivals: Arrivals
    attacker: NDArray[np.bool_]
    size: NDArray[np.int64]
    """Octets of the GeoNetworking packets."""
    airtime_s: NDArray[np.float64]
    heard_s: NDArray[np.float64]
    """When the receiver had it from the medium; not a number for one that it never had."""
    service_s: NDArray[np.float64]
    """The receiver's time for it."""
    done_s: NDArray[np.float64]
    """When the receiver had processed it; not a number for one that was lost."""
    fate: NDArray[np.int64]
    """Numbers of `Fate`."""


def simulate(parameters: SimulationParameters, random: np.random.Generator) -> SimulatedPackets:
    """Let all stations send for warm-up and duration, to one receiver. Raises UserError, as `stack_timing`."""
    timing = parameters.stack_timing()
    arrivals = _arrivals(parameters, timing.jitter_ms / 1e3, random)
    attacker = arrivals.station > parameters.senders
    size = _sizes(parameters, arrivals, attacker)
    airtime_s = np.array([airtime_us(octets) for octets in range(size.max() + 1)])[size] / 1e6
    ready_s = _through_sending_stacks(arrivals, timing.sender.service_ms / 1e3, timing.sender.room)
    heard_s, collided = _over_the_medium(parameters, arrivals, ready_s, airtime_s, timing.sender.room, random)
    service_ms = np.full(len(size), timing.receiver.service_ms[parameters.security])
    if parameters.attacking:
        service_ms[attacker] = timing.receiver.attack_ms[parameters.attack]
    service_s = service_ms / 1e3
    done_s = np.full(len(size), np.nan)
    heard = np.flatnonzero(~np.isnan(heard_s))
    heard = heard[np.argsort(heard_s[heard], kind="stable")]
    done_s[heard] = served_s(heard_s[heard], service_s[heard], timing.receiver.room)
    fate = np.where(attacker, Fate.REJECTED, Fate.ACCEPTED)
    fate[np.isnan(done_s)] = Fate.RECEIVER_FULL
    fate[np.isnan(heard_s)] = Fate.SENDER_FULL
    fate[collided] = Fate.COLLIDED
    return SimulatedPackets(arrivals, attacker, size, airtime_s, heard_s, service_s, done_s, fate)


def _arrivals(parameters: SimulationParameters, jitter_s: float, random: np.random.Generator) -> Arrivals:
    total_s = parameters.warm_up + parameters.duration
    benign = periodic_arrivals(
        parameters.senders, parameters.rate, duration_s=total_s, jitter_s=jitter_s, random=random
    )
    if not parameters.attacking:
        return benign
    first, rate = parameters.senders + 1, parameters.attack_rate
    attacks = periodic_arrivals(
        parameters.attacking, rate, duration_s=total_s, jitter_s=jitter_s, random=random, first=first
    )
    return together(benign, attacks)


def _sizes(parameters: SimulationParameters, arrivals: Arrivals, attacker: NDArray[np.bool_]) -> NDArray[np.int64]:
    size = np.where(arrivals.certificate, parameters.size_certificate, parameters.size_digest)
    if parameters.security is SecurityMode.NONE:
        size[:] = parameters.size_unsecured
    if parameters.attack is Attack.NO_SIGNATURE:
        size[attacker] = parameters.size_unsecured
    return size


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
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """When the receiver had each packet (not a number: never), and which ones collided."""
    heard_s, collided = np.full(len(ready_s), np.nan), np.zeros(len(ready_s), np.bool_)
    ready = np.flatnonzero(~np.isnan(ready_s))
    ready = ready[np.argsort(ready_s[ready], kind="stable")]
    if parameters.medium is MediumChoice.IDEAL:
        sent = Transmissions(ready_s[ready] + airtime_s[ready], np.zeros(len(ready), np.bool_))
    else:
        sent = shared_medium(
            arrivals.station[ready], ready_s[ready], airtime_s[ready], category=BEST_EFFORT, room=room, random=random
        )
    heard_s[ready], collided[ready] = sent.ended_s, sent.collided
    return heard_s, collided
