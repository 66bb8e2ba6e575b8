"""The figures of each queue, of a run with several: throughput, losses, and how long its messages took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from labconsole.analysis.caveats import too_few
from labconsole.model.trial import Event, Metric
from labconsole_amqp.choices import Loop, Mode
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import Phase
from labconsole_amqp.trial.joining import JoinedSamples
from labconsole_amqp.trial.latency import counted_rows, latencies_ns, measures
from labconsole_amqp.trial.metrics import metric

_QUANTILES = {"p50": 0.5, "p99": 0.99}


def address_figures(
    parameters: AmqpParameters, joined: JoinedSamples, events: Sequence[Event], overall: Mapping[str, Metric]
) -> Iterator[Metric]:
    """Yield the figures of each address, labelled with it; none with one address.

    A message belongs to the address of its sender. Figures are left out, and not judged, where the `overall` ones are.
    """
    addresses = parameters.addresses
    if len(addresses) == 1 or not parameters.numbered:
        return
    for address in addresses:
        senders = [index for index in range(parameters.senders) if parameters.address_of(index) == address]
        own = joined.of_senders(senders)
        figures = (*_throughput(parameters, own), *_lost(parameters, own, senders), *_times(parameters, own, events))
        for name, value, samples, doubt in figures:
            if name in overall:
                whole = overall[name]
                yield metric(name, value, samples, whole.not_judged or doubt, whole.uncertainty, queue=address)


Figure = tuple[str, float, int, str]
"""Name, value, number of samples, and why it is not judged."""


def _throughput(parameters: AmqpParameters, own: JoinedSamples) -> Iterator[Figure]:
    counted = counted_rows(parameters, own, Phase.FULL_SPEED if parameters.loop is Loop.BOTH else Phase.WHOLE)
    times = own.received["received_ns"][counted & own.good]
    if len(times) > 1 and times[-1] > times[0]:
        yield "throughput", (len(times) - 1) * 1e9 / int(times[-1] - times[0]), len(times), ""


def _lost(parameters: AmqpParameters, own: JoinedSamples, senders: Sequence[int]) -> Iterator[Figure]:
    if parameters.mode is Mode.RECEIVER:
        expected = parameters.per_sender * len(senders)
        arrived = min(expected, len(np.unique(own.received["number"])))
    else:
        expected = int(np.count_nonzero(np.isin(own.sent["role"], senders)))
        arrived = int(np.count_nonzero(own.matched))
    yield "lost", expected - arrived, expected, ""


def _times(parameters: AmqpParameters, own: JoinedSamples, events: Sequence[Event]) -> Iterator[Figure]:
    for measure in measures(parameters):
        _, latencies = latencies_ns(parameters, own, events, measure.phase)
        for name, quantile in _QUANTILES.items() if len(latencies) else ():
            value = float(np.quantile(latencies / 1e6, quantile, method="inverted_cdf"))
            yield f"{measure.prefix}_{name}", value, len(latencies), too_few(len(latencies), quantile)
