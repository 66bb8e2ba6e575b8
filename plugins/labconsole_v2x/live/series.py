"""What the stations of a live trial record, and report while it is in progress. Light: each role imports it."""

from __future__ import annotations

from labconsole.model.series import TIME_PROGRESS, Column, LiveChannel, LiveKind, Series

STATIONS = Series(
    "stations",
    "The stations of a process, and under which names they send: a row for each identity that was used",
    (
        Column("station", "u2", "", "Number of the station"),
        Column("instance", "u2", "", "Number of the instance: each has its own ticket and clock"),
        Column("source", "i8", "", "MAC address, as a number"),
        Column("station_id", "u4", "", "Station ID in CAMs"),
        Column("ticket", "u8", "", "HashedId8 of the authorization ticket, as a number; 0 without security"),
        Column("from_ns", "i8", "ns", "Time of the change to these names; 0: from the beginning", by_clock=True),
    ),
)

SENT = Series(
    "sent",
    "Each CAM that was sent",
    (
        Column("station", "u2", "", "Number of the station"),
        Column("source", "i8", "", "MAC address, as a number"),
        Column("identity", "i8", "", "generationTime (ITS time, us); of an unsecured packet a hash"),
        Column("due_ns", "i8", "ns", "Time at which the CAM was due", by_clock=True),
        Column("sent_ns", "i8", "ns", "Time at which its frame was handed to the network", by_clock=True),
        Column("sign_ns", "u4", "ns", "Time to sign and to encode the secured packet"),
        Column("size", "u2", "B", "Size of the GeoNetworking packet"),
        Column("certificate", "u1", "", "1 with the whole certificate as signer, 0 with its digest"),
    ),
)

RECEIVED = Series(
    "received",
    "Each packet that a receiver has processed",
    (
        Column("receiver", "u2", "", "Number of the station that received it"),
        Column("source", "i8", "", "MAC address of the sender, as a number"),
        Column("identity", "i8", "", "generationTime (ITS time, us); of an unsecured packet a hash; 0: unreadable"),
        Column("received_ns", "i8", "ns", "Time at which its frame was read from the socket", by_clock=True),
        Column("started_ns", "i8", "ns", "Time at which it was taken out of the receiver's queue", by_clock=True),
        Column("verify_ns", "u4", "ns", "Time of the security checks"),
        Column(
            "done_ns",
            "i8",
            "ns",
            "Time at which it was decoded and entered in the neighbour table, or rejected",
            by_clock=True,
        ),
        Column("age_ns", "i8", "ns", "From the generation time in the packet until then, by the wall clock"),
        Column("size", "u2", "B", "Size of the GeoNetworking packet"),
        Column("content", "u2", "B", "Size of the headers and the CAM that are protected"),
        Column("reason", "u1", "", "0 accepted, else the reason of the rejection by number"),
        Column("waited", "u1", "", "1 for a packet checked again, once a certificate had become known"),
    ),
)

QUEUE = Series(
    "queue",
    "Packets that wait in the receiver's queue",
    (Column("t_ns", "i8", "ns", "Time", by_clock=True), Column("length", "u4", "", "Packets")),
)

QUIET_NS = 500_000_000
"""A receiver continues until nothing has come for so long after the end of the run. In a run that was ended before its
time, what was due later than that before the receiver's last reading does not count: it may have been under way."""

SENT_CHANNEL = LiveChannel("sent", "Sent", "msg", by_role=True)
ATTACKED_CHANNEL = LiveChannel("attacked", "Sent by attackers", "msg", by_role=True)
RECEIVED_CHANNEL = LiveChannel("received", "Received", "msg", by_role=True)
ACCEPTED_CHANNEL = LiveChannel("accepted", "Verified and accepted", "msg", by_role=True)
DELIVERED_CHANNEL = LiveChannel("delivered", "Accepted of this run's senders", "msg", shown=False)
"""Receptions of the run's own CAMs that were accepted: what loss is reckoned from while the run is in progress."""
REJECTED_CHANNEL = LiveChannel("rejected", "Rejected", "msg")
AGE_CHANNEL = LiveChannel("age", "Age when processed", "ns")
VERIFY_CHANNEL = LiveChannel("verify_time", "Time to verify", "ns")
QUEUE_CHANNEL = LiveChannel("queue", "Receiver queue", "packets", kind=LiveKind.GAUGE)
REASONS_CHANNEL = LiveChannel("reasons", "Rejected by reason", "", kind=LiveKind.STATE, shown=False)
"""Reason -> number of packets, of a receiver."""
STATIONS_CHANNEL = LiveChannel("stations", "Stations", "", kind=LiveKind.STATE, shown=False)
"""A part of a role's stations in turn: `first` (number), `east` and `north` in m, `sent`, `on`, and `heard`: for each,
a hexadecimal number in which bit n is set where station n was heard in the last second. Empty where none receives."""

LIVE = (
    ACCEPTED_CHANNEL,
    RECEIVED_CHANNEL,
    SENT_CHANNEL,
    DELIVERED_CHANNEL,
    REJECTED_CHANNEL,
    AGE_CHANNEL,
    VERIFY_CHANNEL,
    QUEUE_CHANNEL,
    REASONS_CHANNEL,
    STATIONS_CHANNEL,
    TIME_PROGRESS,
)

PKI_EVENT = "pki"
"""The run's certificates: HashedId8 of root, AA; how many tickets."""
NO_CHANGE_EVENT = "no change of identity"
"""`station` has one ticket, or no ticket was valid for so many changes (`failures`)."""
TOO_LATE_EVENT = "too late"
"""`number` CAMs were due and not sent before the end: the computer was too slow."""
IMPLAUSIBLE_EVENT = "implausible content"
"""What receivers found implausible: `found` maps each kind to the number of CAMs."""
END_EVENT = "end"
"""The last due time of a run has passed in a sender: `skipped` due times gave no CAM because of DCC."""
