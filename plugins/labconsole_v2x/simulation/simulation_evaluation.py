"""Figures and curves of a simulated run, from its stored packets alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import OFFERED_RATE, Curve, Distribution, Evaluation, Metric, Samples
from labconsole_v2x.simulation.packet_series import PACKETS
from labconsole_v2x.simulation.simulation_metrics import METRICS, metric
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from labconsole_v2x.simulation.testbed import Fate

Table = dict[str, NDArray[Any]]
_PLACES = {
    Fate.SENDER_FULL: "sender's queue",
    Fate.COLLIDED: "collision",
    Fate.RECEIVER_FULL: "receiver queue",
}
_QUANTILES = {kind.name: kind.quantile for kind in METRICS if kind.quantile is not None}
_INTERVALS = 100


def evaluate(parameters: SimulationParameters, samples: Samples) -> Evaluation:
    """All figures of a run; none of one that was stopped before it had recorded a packet."""
    packets = _counted(parameters, samples)
    if not len(packets["fate"]):
        return Evaluation(())
    return Evaluation(tuple(_metrics(parameters, packets)))


def distributions(parameters: SimulationParameters, samples: Samples) -> tuple[Distribution, ...]:
    """The latency of accepted CAMs, ms."""
    latency = latencies_ms(_counted(parameters, samples))
    return (Distribution("Latency", "ms", latency),) if len(latency) else ()


def curves(parameters: SimulationParameters, samples: Samples) -> tuple[Curve, ...]:
    """Rates, latency and loss of benign stations over the virtual time, the warm-up included."""
    packets = _all(samples)
    if not len(packets["fate"]):
        return ()
    generated_s = packets["generated_ns"] / 1e9
    edges = np.linspace(0.0, parameters.warm_up + parameters.duration, _INTERVALS + 1)
    middles, width_s = (edges[:-1] + edges[1:]) / 2, edges[1]
    benign, accepted = packets["attacker"] == 0, packets["fate"] == Fate.ACCEPTED

    def counts(chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.histogram(generated_s[chosen], edges)[0].astype(np.float64)

    sent, got = counts(benign), counts(accepted)
    rates = [
        Curve("Benign, sent", "Rate", "msg/s", middles, sent / width_s),
        Curve("Benign, accepted", "Rate", "msg/s", middles, got / width_s),
    ]
    if not benign.all():
        rates.insert(1, Curve("Attackers, sent", "Rate", "msg/s", middles, counts(~benign) / width_s))
    sums = np.histogram(generated_s[accepted], edges, weights=latencies_ms(packets))[0]
    return (
        *rates,
        Curve("Mean", "Latency", "ms", middles[got > 0], sums[got > 0] / got[got > 0]),
        Curve("Loss", "Packet loss", "%", middles[sent > 0], 100 * (1 - got[sent > 0] / sent[sent > 0])),
    )


def latencies_ms(packets: Table) -> NDArray[np.float64]:
    """From generated to processed, of all accepted CAMs in order of their generation."""
    accepted = packets["fate"] == Fate.ACCEPTED
    return np.asarray((packets["done_ns"][accepted] - packets["generated_ns"][accepted]) / 1e6)


def _all(samples: Samples) -> Table:
    for role in samples.roles(PACKETS.name):
        return dict(samples.table(PACKETS.name, role))
    return {column.name: np.empty(0, column.numpy_type) for column in PACKETS.columns}


def _counted(parameters: SimulationParameters, samples: Samples) -> Table:
    """The packets that were generated after the warm-up."""
    packets = _all(samples)
    inside = packets["generated_ns"] >= round(parameters.warm_up * 1e9)
    return {name: column[inside] for name, column in packets.items()}


def _metrics(parameters: SimulationParameters, packets: Table) -> Iterator[Metric]:
    benign, fate = packets["attacker"] == 0, packets["fate"]
    heard, accepted = packets["heard_ns"] >= 0, fate == Fate.ACCEPTED
    sent, got, ended_s = int(benign.sum()), int(accepted.sum()), parameters.duration
    if heard.any():
        yield metric("benign_share", 100 * (benign & heard).sum() / heard.sum(), int(heard.sum()))
    if sent:
        yield metric("packet_loss", 100 * (1 - got / sent), sent)
    latency = latencies_ms(packets)
    if len(latency):
        yield metric("latency_mean", latency.mean(), len(latency))
        for name in ("latency_p50", "latency_p95", "latency_p99"):
            quantile = np.quantile(latency, _QUANTILES[name], method="inverted_cdf")
            yield metric(name, float(quantile), len(latency))
        yield metric("latency_max", latency.max(), len(latency))
    yield metric("accept_rate", got / ended_s, got)
    if sent:
        yield metric("packet_delivery_ratio", 100 * (benign & heard).sum() / sent, sent)
        yield metric("lost", sent - got, sent)
        for place, title in _PLACES.items():
            yield metric("lost", int((benign & (fate == place)).sum()), sent, place=title)
    yield metric("goodput", got * parameters.size_unsecured * 8 / 1000 / ended_s, got)
    busy_s = packets["service_ns"] / 1e9
    yield metric("rejected_time", 100 * busy_s[~benign].sum() / ended_s, int((~benign).sum()))
    yield metric("receiver_load", 100 * busy_s.sum() / ended_s, int((busy_s > 0).sum()))
    on_air = packets["airtime_ns"]
    yield metric("channel_busy_ratio", 100 * on_air.sum() / 1e9 / ended_s, int((on_air > 0).sum()))
    if sent:
        yield metric("certificate_share", 100 * packets["certificate"][benign].mean(), sent)
    yield metric(OFFERED_RATE, parameters.benign_messages, sent)
    yield metric("sent", sent, sent)
    yield metric("accepted", got, got)
