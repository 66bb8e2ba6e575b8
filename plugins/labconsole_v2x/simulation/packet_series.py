"""What a simulation records of each packet, and reports while it computes."""

from __future__ import annotations

from labconsole.model.series import Column, LiveChannel, Series
from labconsole.model.trial import Origin

PACKETS = Series(
    "packets",
    "Each packet, by the virtual clock",
    (
        Column("station", "u2", "", "Number of the sending station; attackers have the highest ones"),
        Column("attacker", "u1", "", "1 for a packet of an attacker"),
        Column("generated_ns", "i8", "ns", "Time at which it was generated, since T0"),
        Column("heard_ns", "i8", "ns", "Time at which the receiver had it from the medium; -1: never"),
        Column("done_ns", "i8", "ns", "Time at which the receiver had processed it; -1: never"),
        Column("service_ns", "i8", "ns", "The receiver's time for it; 0 if it never processed it"),
        Column("airtime_ns", "i8", "ns", "Its time on air; 0 if it was never sent"),
        Column("size", "u2", "B", "Size of the GeoNetworking packet"),
        Column("certificate", "u1", "", "1 with the whole certificate"),
        Column(
            "fate", "u1", "", "0 accepted, 1 rejected, 2 no room at its sender, 3 collided, 4 no room at the receiver"
        ),
    ),
    Origin.SIMULATED,
)

SIMULATED_CHANNEL = LiveChannel("simulated", "Simulated", "packets")
