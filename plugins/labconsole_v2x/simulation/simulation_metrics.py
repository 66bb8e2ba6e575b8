"""The figures of a simulated run, each with its exact definition; those of a live run keep their names."""

from __future__ import annotations

from dataclasses import replace

from labconsole.model.trial import OFFERED_RATE, Direction, MetricKind
from labconsole_v2x.attacks.attack_metrics import BENIGN_SHARE, RECEIVER_LOAD, REJECTED_TIME
from labconsole_v2x.live.live_metrics import METRICS as LIVE_METRICS
from labconsole_v2x.live.live_metrics import MetricMaker

_LIVE = {kind.name: kind for kind in LIVE_METRICS}


def _as_live(name: str, description: str) -> MetricKind:
    """A figure that a live run has, too."""
    return replace(_LIVE[name], description=description)


def _latency(name: str, text: str) -> MetricKind:
    return _as_live(f"latency_{name}", f"{text} from the generation of a CAM to the end of its processing.")


METRICS: tuple[MetricKind, ...] = (
    BENIGN_SHARE,
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
    REJECTED_TIME,
    RECEIVER_LOAD,
    MetricKind(
        "neighbours_served",
        "Neighbours served at most",
        "stations",
        Direction.HIGHER,
        "So many stations that send as the benign ones do keep the receiver's stack busy all of the time: its time "
        "without that for attackers, over that for the packets of one station, if it hears all. The channel may carry "
        "fewer: see packet loss and channel busy ratio.",
    ),
    MetricKind(
        "channel_busy_ratio",
        "Channel busy ratio",
        "%",
        Direction.LOWER,
        "Share of the duration in which at least one frame was on air.",
    ),
    _as_live("airtime", "Airtime of all frames sent, over the duration: those that collide count each."),
    _as_live("certificate_share", "Share of the CAMs of benign stations that carried the whole certificate."),
    _as_live(
        OFFERED_RATE,
        "CAMs a second of all benign stations, as set; by the generation rules or with DCC: as generated.",
    ),
    MetricKind(
        "held_back",
        "Held back by DCC",
        "%",
        Direction.NEUTRAL,
        "Share of the CAMs that benign stations had due which DCC did not allow: none of them was generated, and "
        "packet loss counts none. Left out without DCC.",
    ),
)
metric = MetricMaker(METRICS)
