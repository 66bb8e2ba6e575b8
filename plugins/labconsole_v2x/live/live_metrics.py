"""The figures of a live run, each with its exact definition.

A figure counts the CAMs that were due after the warm-up, unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import OFFERED_RATE, Direction, Metric, MetricKind

_HIGHER, _LOWER, _NEUTRAL = Direction.HIGHER, Direction.LOWER, Direction.NEUTRAL
_LATENCY = "from the time at which a CAM was due to the end of its processing (verified, decoded, neighbour table)"


def _latency(name: str, title: str, text: str, quantile: float | None = None) -> MetricKind:
    return MetricKind(f"latency_{name}", title, "ms", _LOWER, f"{text} {_LATENCY}.", quantile, at_rate=True)


METRICS: tuple[MetricKind, ...] = (
    MetricKind(
        "accept_rate",
        "Verified and accepted",
        "msg/s",
        _HIGHER,
        "CAMs of the run's senders that a receiver accepted, over the duration; all receivers together.",
    ),
    _latency("p50", "Latency p50", "Half of the accepted CAMs took this or less,", 0.5),
    _latency("p95", "Latency p95", "95 % of the accepted CAMs took this or less,", 0.95),
    _latency("p99", "Latency p99", "99 % of the accepted CAMs took this or less,", 0.99),
    _latency("mean", "Mean latency", "The mean over all accepted CAMs,"),
    _latency("max", "Latency, largest", "The largest of all accepted CAMs,"),
    MetricKind(
        "packet_loss",
        "Packet loss",
        "%",
        _LOWER,
        "Share of the CAMs sent that were not accepted: unique identities (sender and generationTime) of both logs are "
        "compared, once for each receiver.",
    ),
    MetricKind(
        "packet_delivery_ratio",
        "Packet delivery ratio",
        "%",
        _HIGHER,
        "Share of the CAMs sent that a receiver read from its socket, accepted or not.",
    ),
    MetricKind(
        "lost",
        "Lost",
        "msg",
        _LOWER,
        "CAMs sent and not accepted; by place: channel or socket (never read), receiver queue (no room), verification "
        "(rejected).",
    ),
    MetricKind("rejected", "Rejected", "msg", _LOWER, "CAMs of the run's senders that were rejected, by reason."),
    MetricKind(
        "duplicates",
        "Duplicates",
        "msg",
        _LOWER,
        "Packets that a receiver read once more although it had read the same identity before; of the other figures "
        "they count for Received alone, and for Accepted where nothing is verified.",
    ),
    MetricKind(
        "verify_time",
        "Time to verify, mean",
        "us",
        _LOWER,
        "Mean time of all security checks of an accepted CAM, from its octets to the verdict, without its decoding. "
        "Includes waiting for other threads.",
    ),
    MetricKind("verify_time_p50", "Time to verify, p50", "us", _LOWER, "The median of the same.", 0.5),
    MetricKind("verify_time_p99", "Time to verify, p99", "us", _LOWER, "99 % took this or less.", 0.99),
    MetricKind(
        "sign_time",
        "Time to sign, mean",
        "us",
        _LOWER,
        "Mean time to sign a CAM and to encode the secured packet; left out where nothing is signed.",
    ),
    MetricKind("sign_time_p50", "Time to sign, p50", "us", _LOWER, "The median of the same.", 0.5),
    MetricKind("sign_time_p99", "Time to sign, p99", "us", _LOWER, "99 % took this or less.", 0.99),
    MetricKind(
        "inter_arrival",
        "Inter-arrival time, mean",
        "ms",
        _NEUTRAL,
        "Between two accepted CAMs of one instance at one receiver, by the times at which they were read.",
    ),
    MetricKind(
        "inter_arrival_p99", "Inter-arrival time, p99", "ms", _LOWER, "99 % of the same are this or less.", 0.99
    ),
    MetricKind(
        "goodput",
        "Goodput",
        "kbit/s",
        _HIGHER,
        "Protected octets (GeoNetworking headers, BTP and CAM, without security) of accepted CAMs, over the duration.",
    ),
    MetricKind(
        "packet_size",
        "Packet size, mean",
        "B",
        _NEUTRAL,
        "Octets of the GeoNetworking packets; by signer: whole certificate, its digest, or none.",
    ),
    MetricKind(
        "certificate_share",
        "CAMs with certificate",
        "%",
        _NEUTRAL,
        "Share of the CAMs sent that carried the whole certificate.",
    ),
    MetricKind(
        "air_rate",
        "On air",
        "kbit/s",
        _LOWER,
        "Octets that the frames of all stations, attackers included, would have on air (802.11 header, LLC, check sum "
        "included), over the duration. Calculated.",
    ),
    MetricKind(
        "airtime",
        "Airtime",
        "%",
        _LOWER,
        "Share of time that they would take of a channel at 6 Mbit/s, without gaps between frames; over 100 % they do "
        "not fit. Calculated.",
    ),
    MetricKind("sent", "Sent", "msg", _NEUTRAL, "CAMs of the sending stations, warm-up included."),
    MetricKind(
        "received",
        "Received",
        "msg",
        _NEUTRAL,
        "Packets that receivers read, warm-up and those of other stations included.",
    ),
    MetricKind(
        "accepted",
        "Accepted",
        "msg",
        _NEUTRAL,
        "Packets that receivers accepted, warm-up and those of other stations included.",
    ),
    MetricKind(
        OFFERED_RATE,
        "Offered rate",
        "msg/s",
        _NEUTRAL,
        "CAMs a second of all senders, as set: left out where they are generated by rules or held back by DCC.",
    ),
    MetricKind("send_rate", "Send rate", "msg/s", _NEUTRAL, "CAMs that all senders sent, over the duration."),
    MetricKind(
        "send_lateness_p99",
        "Sender's lateness, p99",
        "ms",
        _LOWER,
        "From the time at which a CAM was due until its frame was handed to the network: the jitter of sending, which "
        "latency includes.",
        0.99,
    ),
    MetricKind(
        "age_p50",
        "Age when processed, p50",
        "ms",
        _LOWER,
        "From the generation time in an accepted packet to the end of its processing, by the wall clock; of the whole "
        "run, as the live view has it. Without security header the packet has it in steps of 1 ms.",
        0.5,
    ),
    MetricKind("age_p99", "Age when processed, p99", "ms", _LOWER, "99 % of the same are this or less.", 0.99),
    MetricKind(
        "queue_peak",
        "Receiver queue, largest",
        "packets",
        _LOWER,
        "Most packets that waited in one receiver, of 20 readings a second.",
    ),
    MetricKind(
        "queue_growth",
        "Receiver queue, growth",
        "packets",
        _LOWER,
        "Median length in the last second less that in the first one after the warm-up, the longest of all receivers: "
        "a receiver that keeps up has none. Runs recorded before definitions 2: mean lengths.",
    ),
    MetricKind(
        "warm_up_time",
        "Time to learn all tickets",
        "s",
        _LOWER,
        "From T0 until each receiver had accepted a CAM of each instance: a receiver begins with the root CA only, or, "
        "where every station receives, with its own AA.",
    ),
    MetricKind(
        "waited",
        "Waited for a certificate",
        "msg",
        _LOWER,
        "Packets that a receiver kept until it had their ticket or AA, warm-up included.",
    ),
    MetricKind(
        "neighbours",
        "Neighbours",
        "stations",
        _NEUTRAL,
        "Instances whose CAMs a receiver accepted, whatever their identities; the mean.",
    ),
    MetricKind(
        "identity_changes",
        "Changes of identity",
        "changes",
        _NEUTRAL,
        "How often instances took another ticket and with it other names; left out where each has one ticket.",
    ),
    MetricKind(
        "foreign",
        "From other stations",
        "msg",
        _NEUTRAL,
        "Packets of stations that are not of this run; left out where there were none.",
    ),
    MetricKind("cpu", "CPU", "%", _LOWER, "Mean CPU of a process, 100 % is one core, by role, after the warm-up."),
    MetricKind("memory", "Memory", "MB", _LOWER, "Largest resident memory of a process, by role."),
    MetricKind("hosts", "Hosts", "", _NEUTRAL, "Hosts on which roles of the run were; not the console's own computer."),
    MetricKind(
        "clock_uncertainty",
        "Clock offset, uncertainty",
        "us",
        _LOWER,
        "The sum of the two largest uncertainties of the offsets between the clocks of hosts and the console's, each "
        "the largest before, during and after the run; that of a single host is to the console's clock. Above 10 % of "
        "the median latency, latency is not judged.",
    ),
)


class MetricMaker:
    """Makes the figures of a trial."""

    def __init__(self, kinds: Sequence[MetricKind]) -> None:
        self._kinds = {kind.name: kind for kind in kinds}
        self._order = list(self._kinds)

    def __call__(
        self, name: str, value: float, samples: int, not_judged: str = "", uncertainty: float = 0.0, /, **labels: str
    ) -> Metric:
        """A figure with the unit and direction of its kind."""
        kind = self._kinds[name]
        unit, direction = kind.unit, kind.direction
        return Metric(
            name, float(value), unit, direction, samples, labels, not_judged=not_judged, uncertainty=uncertainty
        )

    def ordered(self, metrics: Iterable[Metric]) -> tuple[Metric, ...]:
        """These figures in the order of their definitions."""
        return tuple(sorted(metrics, key=lambda one: self._order.index(one.name)))


metric = MetricMaker(METRICS)
QUANTILES = {kind.name: kind.quantile for kind in METRICS if kind.quantile is not None}
"""Metric -> the part of the values that it does not exceed."""


def quantile(values: NDArray[np.float64], fraction: float) -> float:
    """The value that this part (0 to 1) of at least one value do not exceed."""
    return float(np.quantile(values, fraction, method="inverted_cdf"))


def latency_metrics(
    values_ms: NDArray[np.float64], not_judged: str = "", uncertainty_ms: float = 0.0
) -> Iterator[Metric]:
    """The figures of these latencies; none where there are none."""
    count = len(values_ms)
    if not count:
        return
    yield metric("latency_mean", values_ms.mean(), count, not_judged, uncertainty_ms)
    yield metric("latency_max", values_ms.max(), count, not_judged, uncertainty_ms)
    for name, fraction in QUANTILES.items():
        if name.startswith("latency_"):
            yield metric(name, quantile(values_ms, fraction), count, not_judged, uncertainty_ms)
