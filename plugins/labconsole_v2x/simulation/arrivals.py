"""The packets that simulated stations and attackers generate: when, and which of them carry a certificate.

Here no station hears another one: `closed_loop` has those that do.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labconsole_v2x.choices import Attack, Generation, InclusionChoice
from labconsole_v2x.simulation.simulation_parameters import INSTANCE_HZ, SimulationParameters
from labconsole_v2x.stations.cam_timing import RuleTiming
from labconsole_v2x.stations.channel import airtime_us
from labconsole_v2x.stations.routes import vehicle_route
from labconsole_v2x.stations.sending import SecurityMode


class Arrivals(NamedTuple):
    """Packets in order of their generation, arrays of one length."""

    station: NDArray[np.int64]
    """From 1 on."""
    instance: NDArray[np.int64]
    """A number for each instance of each station: programs of their own, as in the source's boxes."""
    generated_s: NDArray[np.float64]
    certificate: NDArray[np.bool_]
    """Whether a packet carries the whole certificate."""


def generated(parameters: SimulationParameters, jitter_s: float, random: np.random.Generator) -> Arrivals:
    """The packets of benign stations, and those of attackers with the highest numbers."""
    total_s = parameters.warm_up + parameters.duration
    if parameters.generation is Generation.RULES:
        benign = by_rules(parameters.senders, total_s, jitter_s, random)
    else:
        benign = periodic_arrivals(parameters.senders, parameters.rate, total_s, jitter_s, random)
    benign = _included(parameters, benign)
    if not parameters.attacking:
        return benign
    attacks = attackers_arrivals(parameters, jitter_s, benign.instance.max(initial=-1) + 1, random)
    both = [np.concatenate(columns) for columns in zip(benign, attacks, strict=True)]
    order = np.argsort(both[2], kind="stable")
    return Arrivals(*(column[order] for column in both))


def attackers_arrivals(
    parameters: SimulationParameters, jitter_s: float, instances: int, random: np.random.Generator
) -> Arrivals:
    """The packets of attackers, whose stations and instances are numbered after the benign ones."""
    total_s = parameters.warm_up + parameters.duration
    attacks = periodic_arrivals(parameters.attacking, parameters.attack_rate, total_s, jitter_s, random)
    return attacks._replace(station=attacks.station + parameters.senders, instance=attacks.instance + instances)


def periodic_arrivals(
    stations: int, rate: float, duration_s: float, jitter_s: float, random: np.random.Generator
) -> Arrivals:
    """The packets of `stations` at `rate` Hz each, one of each instance in each second with its certificate.

    Each instance begins anywhere in its first period; each packet is later than its period by up to `jitter_s`,
    uniformly distributed. Certificates of different instances are not in step with each other.
    """
    instances = -(-rate // INSTANCE_HZ)
    period_s = instances / rate
    count = int(stations * instances)
    each = int(np.ceil(duration_s / period_s))
    due = random.random((count, 1)) * period_s + period_s * np.arange(each)
    generated_s = due + random.random((count, each)) * jitter_s
    generated_s.sort(axis=1)
    seconds = np.floor(generated_s + random.random((count, 1)))
    certificate = np.diff(seconds, axis=1, prepend=-1.0) > 0
    instance = np.repeat(np.arange(count), each)
    order = np.argsort(generated_s, axis=None, kind="stable")
    inside = order[generated_s.ravel()[order] < duration_s]
    station = 1 + instance[inside] % stations
    return Arrivals(station, instance[inside], generated_s.ravel()[inside], certificate.ravel()[inside])


def by_rules(stations: int, duration_s: float, jitter_s: float, random: np.random.Generator) -> Arrivals:
    """The packets of moving vehicles by the rules of EN 302 637-2, on routes as those of live stations."""
    rows: list[tuple[float, int, bool]] = []
    for station in range(1, stations + 1):
        route = vehicle_route(Random(int(random.integers(1 << 32))))
        timing, certificate_due_s = RuleTiming(round(random.random() * 1e8)), 0.0
        while (at_s := timing.due_ns / 1e9) < duration_s:
            if timing.generates(route.at(at_s), 0):
                with_certificate = at_s >= certificate_due_s
                certificate_due_s = at_s + 1 if with_certificate else certificate_due_s
                rows.append((at_s, station, with_certificate))
            timing.advance()
    due_s, number, certificate = (np.array(column) for column in zip(*rows, strict=True))
    generated_s = due_s + random.random(len(rows)) * jitter_s
    order = np.argsort(generated_s, kind="stable")
    order = order[generated_s[order] < duration_s]
    return Arrivals(number[order], number[order] - 1, generated_s[order], certificate[order])


def _included(parameters: SimulationParameters, arrivals: Arrivals) -> Arrivals:
    """The arrivals with their certificates where the policy is not that of ETSI, one a second."""
    if parameters.inclusion is InclusionChoice.ETSI:
        return arrivals
    always = parameters.inclusion is InclusionChoice.ALWAYS
    return arrivals._replace(certificate=np.full(len(arrivals.station), always))


def sizes_of(parameters: SimulationParameters, arrivals: Arrivals) -> NDArray[np.int64]:
    """Octets of the GeoNetworking packets."""
    size = np.where(arrivals.certificate, parameters.size_certificate, parameters.size_digest)
    if parameters.security is SecurityMode.NONE:
        size[:] = parameters.size_unsecured
    if parameters.attack is Attack.NO_SIGNATURE:
        size[arrivals.station > parameters.senders] = parameters.size_unsecured
    return size


def airtimes_s(size: NDArray[np.int64]) -> NDArray[np.float64]:
    """The time on air of GeoNetworking packets with so many octets."""
    sizes, of_size = np.unique(size, return_inverse=True)
    return np.array([airtime_us(octets) / 1e6 for octets in sizes.tolist()])[of_size]
