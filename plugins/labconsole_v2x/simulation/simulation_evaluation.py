"""Figures and curves of a simulated run, from its stored packets alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import OFFERED_RATE, Curve, Distribution, Evaluation, Metric, Origin, Samples
from labconsole_v2x.choices import Generation
from labconsole_v2x.live.live_curves import ATTACKERS_SENT, counts, interval_edges, latency_curves, loss_curve, middles
from labconsole_v2x.live.live_metrics import latency_metrics
from labconsole_v2x.simulation.packet_series import PACKETS
from labconsole_v2x.simulation.simulation_metrics import metric
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from labconsole_v2x.simulation.testbed import Fate

Table = dict[str, NDArray[Any]]
_PLACES = {
    Fate.SENDER_FULL: "sender's queue",
    Fate.COLLIDED: "collision",
    Fate.RECEIVER_FULL: "receiver queue",
}


def evaluate(parameters: SimulationParameters, samples: Samples) -> Evaluation:
    """All figures of a run: those of the packets that were generated after the warm-up, and of the time since then."""
    due = _all(samples)
    from_ns = round(parameters.warm_up * 1e9)
    packets = _chosen(due, due["fate"] != Fate.HELD_BACK)
    counted = _chosen(packets, packets["generated_ns"] >= from_ns)
    if not len(counted["fate"]):
        return Evaluation(())
    metrics = [*latency_metrics(_latencies_ms(counted)), *_counts(parameters, counted)]
    metrics += [*_neighbours(parameters, counted), *_shares(parameters, packets)]
    if parameters.dcc:
        metrics.append(_held_back(_chosen(due, due["generated_ns"] >= from_ns)))
    return Evaluation(tuple(replace(one, origin=Origin.SIMULATED) for one in metric.ordered(metrics)))


def distributions(parameters: SimulationParameters, samples: Samples) -> tuple[Distribution, ...]:
    """The latency of accepted CAMs, ms."""
    packets = _all(samples)
    latency = _latencies_ms(packets)[_generated_s(packets)[_accepted(packets)] >= parameters.warm_up]
    return (Distribution("Latency", "ms", latency),) if len(latency) else ()


def curves(parameters: SimulationParameters, samples: Samples) -> tuple[Curve, ...]:
    """Rates, latency and loss by the time at which packets were generated, the warm-up included."""
    packets = _all(samples)
    generated_s, benign, accepted = _generated_s(packets), packets["attacker"] == 0, _accepted(packets)
    if not len(generated_s):
        return ()
    held_back = packets["fate"] == Fate.HELD_BACK
    attacks, benign = ~benign, benign & ~held_back
    edges = interval_edges(parameters.warm_up + parameters.duration)
    further = {ATTACKERS_SENT: attacks, "Held back by DCC": held_back}
    shown = {"Sent": benign, "Accepted": accepted, **{title: rows for title, rows in further.items() if rows.any()}}
    return (
        *(
            Curve(title, "Rate", "msg/s", middles(edges), counts(generated_s[chosen], edges) / edges[1])
            for title, chosen in shown.items()
        ),
        *latency_curves(generated_s[accepted], _latencies_ms(packets), edges),
        loss_curve(counts(generated_s[benign], edges), counts(generated_s[accepted], edges), edges),
    )


def _all(samples: Samples) -> Table:
    for role in samples.roles(PACKETS.name):
        return dict(samples.table(PACKETS.name, role))
    return {column.name: np.empty(0, column.numpy_type) for column in PACKETS.columns}


def _chosen(packets: Table, rows: NDArray[np.bool_]) -> Table:
    return {name: column[rows] for name, column in packets.items()}


def _generated_s(packets: Table) -> NDArray[np.float64]:
    return np.asarray(packets["generated_ns"] / 1e9)


def _accepted(packets: Table) -> NDArray[np.bool_]:
    return np.asarray(packets["fate"] == Fate.ACCEPTED)


def _latencies_ms(packets: Table) -> NDArray[np.float64]:
    """From generated to processed, of all accepted CAMs in order of their generation."""
    accepted = _accepted(packets)
    return np.asarray((packets["done_ns"][accepted] - packets["generated_ns"][accepted]) / 1e6)


def _counts(parameters: SimulationParameters, packets: Table) -> Iterator[Metric]:
    benign, fate, accepted = packets["attacker"] == 0, packets["fate"], _accepted(packets)
    heard = (packets["sent_ns"] >= 0) & (fate != Fate.COLLIDED)
    sent, got = int(np.count_nonzero(benign)), int(np.count_nonzero(accepted))
    heard_benign, heard_all = int(np.count_nonzero(heard & benign)), int(np.count_nonzero(heard))
    if heard_all:
        yield metric("benign_share", 100 * heard_benign / heard_all, heard_all)
    if sent:
        yield metric("packet_loss", 100 * (sent - got) / sent, sent)
        yield metric("packet_delivery_ratio", 100 * heard_benign / sent, sent)
        yield metric("lost", sent - got, sent)
        for place, title in _PLACES.items():
            yield metric("lost", int(np.count_nonzero(benign & (fate == place))), sent, place=title)
        yield metric("certificate_share", 100 * packets["certificate"][benign].mean(), sent)
    if got and parameters.security.verifies:
        yield metric("verify_time", packets["service_ns"][accepted].mean() / 1e3, got)
    as_set = parameters.generation is Generation.FIXED and not parameters.dcc
    yield metric(OFFERED_RATE, parameters.benign_messages if as_set else sent / parameters.duration, sent)
    yield metric("accept_rate", got / parameters.duration, got)
    yield metric("goodput", got * parameters.size_unsecured * 8 / 1000 / parameters.duration, got)


def _held_back(due: Table) -> Metric:
    """What DCC held back of all that benign stations had due."""
    benign = due["fate"][due["attacker"] == 0]
    return metric("held_back", 100 * np.mean(benign == Fate.HELD_BACK), len(benign))


def _neighbours(parameters: SimulationParameters, packets: Table) -> Iterator[Metric]:
    """How many stations the receiver's stack could serve, if it heard all that is generated."""
    attacks = packets["attacker"] == 1
    if attacks.all():
        return
    whole_ns = parameters.duration * 1e9 * parameters.receiver_cores
    left_ns = max(0.0, whole_ns - packets["service_ns"][attacks].sum())
    served = parameters.senders * left_ns / packets["service_ns"][~attacks].sum()
    yield metric("neighbours_served", served, int(np.count_nonzero(~attacks)))


def _shares(parameters: SimulationParameters, packets: Table) -> Iterator[Metric]:
    """Parts of the time that counts, %."""
    from_ns = round(parameters.warm_up * 1e9)
    until_ns = from_ns + round(parameters.duration * 1e9)

    def share(name: str, begin_ns: NDArray[np.int64], end_ns: NDArray[np.int64], cores: int = 1) -> Metric:
        spent_ns = np.maximum(np.minimum(end_ns, until_ns) - np.maximum(begin_ns, from_ns), 0)
        return metric(name, 100 * spent_ns.sum() / (until_ns - from_ns) / cores, int(np.count_nonzero(spent_ns)))

    served = packets["done_ns"] >= 0
    for name, chosen in (("rejected_time", served & (packets["attacker"] == 1)), ("receiver_load", served)):
        done_ns = packets["done_ns"][chosen]
        yield share(name, done_ns - packets["service_ns"][chosen], done_ns, parameters.receiver_cores)
    order = np.argsort(packets["sent_ns"], kind="stable")
    order = order[packets["sent_ns"][order] >= 0]
    begun_ns = packets["sent_ns"][order]
    ended_ns = begun_ns + packets["airtime_ns"][order]
    yield share("airtime", begun_ns, ended_ns)
    busy_until_ns = np.maximum.accumulate(np.concatenate(([0], ended_ns)))[:-1]
    yield share("channel_busy_ratio", np.maximum(begun_ns, busy_until_ns), ended_ns)
