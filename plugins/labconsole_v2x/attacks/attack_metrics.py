"""The figures of a run under attack, each with its exact definition; those of benign stations are the live trial's.

All are counted from packets. A figure counts what was due, or was read, after the warm-up, unless it says otherwise.
"""

from __future__ import annotations

from labconsole.model.trial import Direction, MetricKind
from labconsole_v2x.live.live_metrics import METRICS as LIVE_METRICS
from labconsole_v2x.live.live_metrics import MetricMaker

_HIGHER, _LOWER, _NEUTRAL = Direction.HIGHER, Direction.LOWER, Direction.NEUTRAL

BENIGN_SHARE = MetricKind(
    "benign_share",
    "Benign share",
    "%",
    _HIGHER,
    "Share of the packets that the receiver heard which came from benign stations: the source's Packet Delivery "
    "Ratio of Table 4.2.",
)
REJECTED_TIME = MetricKind(
    "rejected_time",
    "Time spent on rejected packets",
    "%",
    _LOWER,
    "Share of the duration that the receiver's stack spent on packets of attackers, of all its cores; live: of all its "
    "threads.",
)
RECEIVER_LOAD = MetricKind(
    "receiver_load",
    "Receiver's load",
    "%",
    _LOWER,
    "Share of the duration that the receiver's stack was busy with packets, of all its cores; live: of all its "
    "threads.",
)

METRICS: tuple[MetricKind, ...] = (
    BENIGN_SHARE,
    *LIVE_METRICS,
    MetricKind(
        "false_accepts",
        "Attack packets accepted",
        "msg",
        _LOWER,
        "Packets of attackers that a receiver accepted, warm-up included: must be none. A CAM that an attacker sent "
        "again counts unless the receiver had not accepted it before, and it is in time: nothing is wrong with that. "
        "Those of A-CON-01 need not be none: an attacker's first CAM can be compared with no other one.",
    ),
    MetricKind(
        "detection_rate",
        "Implausible content detected",
        "%",
        _HIGHER,
        "Packets of attackers in A-CON-01 that receivers rejected for implausible content, of those that they checked.",
    ),
    MetricKind(
        "false_alarm_rate",
        "False alarms",
        "%",
        _LOWER,
        "CAMs of benign stations that receivers rejected for implausible content, of those that they checked.",
    ),
    MetricKind(
        "linked_by_identifiers",
        "Changes linked by identifiers",
        "%",
        _LOWER,
        "Changes of identity that the tracker of A-PSN-01 links rightly by a ticket, address, station ID or path "
        "history that stayed or continued, of all changes that it heard, those of the warm-up too, but none of the "
        "last second.",
    ),
    MetricKind(
        "linked_by_motion",
        "Changes linked by motion",
        "%",
        _LOWER,
        "Changes of identity that the tracker of A-PSN-01 links rightly by place, speed and heading alone, of the same "
        "changes.",
    ),
    MetricKind(
        "wrong_links",
        "Wrong links",
        "",
        _NEUTRAL,
        "Links of the tracker of A-PSN-01 that are not a change of one station, by how they were found.",
    ),
    MetricKind("attack_sent", "Sent by attackers", "msg", _NEUTRAL, "Packets of all attackers."),
    MetricKind(
        "attack_received",
        "Received from attackers",
        "msg",
        _NEUTRAL,
        "Packets of attackers that receivers read from their sockets.",
    ),
    MetricKind(
        "attack_rejected",
        "Attack packets rejected",
        "msg",
        _NEUTRAL,
        "Packets of attackers that receivers rejected, by reason, without those that found no room in the queue; one "
        "that waits for a certificate is checked again, and counts for both.",
    ),
    MetricKind(
        "attack_packet_time",
        "Time for an attack packet, mean",
        "us",
        _LOWER,
        "From the time at which a packet of an attacker was taken out of the receiver's queue to its verdict, without "
        "those that found no room in the queue. Includes waiting for other threads.",
    ),
    REJECTED_TIME,
    RECEIVER_LOAD,
)

metric = MetricMaker(METRICS)
