"""What a simulation records of each packet, and reports once it has computed them."""

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
        Column("sent_ns", "i8", "ns", "Time at which its frame began on air; -1: never"),
        Column("airtime_ns", "i8", "ns", "Its time on air: the receiver has it after that, unless it collided"),
        Column("done_ns", "i8", "ns", "Time at which the receiver had processed it; -1: never"),
        Column("service_ns", "i8", "ns", "The receiver's time for it, if it found room"),
        Column("size", "u2", "B", "Size of the GeoNetworking packet"),
        Column("certificate", "u1", "", "1 with the whole certificate"),
        Column(
            "fate",
            "u1",
            "",
            "0 accepted, 1 rejected, 2 no room at sender, 3 collided, 4 no room at receiver, 5 never generated: held "
            "back by DCC when it was due",
        ),
    ),
    Origin.SIMULATED,
)

SIMULATED_CHANNEL = LiveChannel("simulated", "Simulated", "packets")
