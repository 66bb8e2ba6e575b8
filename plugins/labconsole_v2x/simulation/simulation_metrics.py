"""The figures of a simulated run, each with its exact definition; those of a live run keep their names."""

from __future__ import annotations

from dataclasses import replace

from labconsole.model.trial import OFFERED_RATE, Direction, Metric, MetricKind
from labconsole_v2x.live.live_metrics import METRICS as LIVE_METRICS

_HIGHER, _LOWER, _NEUTRAL = Direction.HIGHER, Direction.LOWER, Direction.NEUTRAL
_LIVE = {kind.name: kind for kind in LIVE_METRICS}


def _as_live(name: str, description: str) -> MetricKind:
    """A figure that a live run has, too."""
    return replace(_LIVE[name], description=description)


def _latency(name: str, text: str) -> MetricKind:
    return _as_live(f"latency_{name}", f"{text} from the generation of a CAM to the end of its processing.")


METRICS: tuple[MetricKind, ...] = (
    MetricKind(
        "benign_share",
        "Benign share",
        "%",
        _HIGHER,
        "Share of the packets that the receiver heard which came from benign stations: the source's Packet Delivery "
        "Ratio of Table 4.2.",
    ),
    _as_live("packet_loss", "Share of the CAMs that benign stations generated which were not accepted."),
    _latency("mean", "The mean over all accepted CAMs,"),
    _latency("p50", "Half of the accepted CAMs took this or less,"),
    _latency("p95", "95 % of the accepted CAMs took this or less,"),
    _latency("p99", "99 % of the accepted CAMs took this or less,"),
    _latency("max", "The largest of all accepted CAMs,"),
    _as_live("accept_rate", "CAMs of benign stations that the receiver accepted, over the duration."),
    _as_live(
        "packet_delivery_ratio",
        "Share of the CAMs that benign stations generated which the receiver heard, accepted or not.",
    ),
    _as_live(
        "lost",
        "CAMs of benign stations that were not accepted; by place: sender's queue, collision, receiver queue.",
    ),
    _as_live(
        "goodput", "Octets without security of the CAMs of benign stations that were accepted, over the duration."
    ),
    _as_live(
        "verify_time",
        "Mean time of the receiver's stack for an accepted CAM, its verification included and its waiting not: the one "
        "of the timing profile. Left out where nothing is verified.",
    ),
    MetricKind(
        "rejected_time",
        "Time spent on rejected packets",
        "%",
        _LOWER,
        "Share of the duration that the receiver's stack spent on packets of attackers, of all its cores.",
    ),
    MetricKind(
        "receiver_load",
        "Receiver's load",
        "%",
        _LOWER,
        "Share of the duration that the receiver's stack was busy with packets, of all its cores.",
    ),
    MetricKind(
        "neighbours_served",
        "Neighbours served at most",
        "stations",
        _HIGHER,
        "So many stations that send as the benign ones do keep the receiver's stack busy all of the time: its time "
        "without that for attackers, over that for the packets of one station, if it hears all. The channel may carry "
        "fewer: see packet loss and channel busy ratio.",
    ),
    MetricKind(
        "channel_busy_ratio",
        "Channel busy ratio",
        "%",
        _LOWER,
        "Share of the duration in which at least one frame was on air.",
    ),
    _as_live("airtime", "Airtime of all frames sent, over the duration: those that collide count each."),
    _as_live("certificate_share", "Share of the CAMs of benign stations that carried the whole certificate."),
    _as_live(OFFERED_RATE, "CAMs a second of all benign stations, as set; by the generation rules: as generated."),
)
_KINDS = {kind.name: kind for kind in METRICS}


def metric(name: str, value: float, samples: int, **labels: str) -> Metric:
    """A figure with the unit and direction of its kind."""
    kind = _KINDS[name]
    return Metric(name, float(value), kind.unit, kind.direction, samples, labels)
