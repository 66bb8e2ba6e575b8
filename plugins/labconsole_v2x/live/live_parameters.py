"""The parameters of the live trial: stations and rates; security, receivers and transport have files of their own."""

from __future__ import annotations

import os
from collections.abc import Sequence

from labconsole.model.parameters import Parameters, parameter
from labconsole_v2x.choices import GENERATIONS, Generation, Receivers
from labconsole_v2x.live.receiver_fields import ReceiverFields
from labconsole_v2x.live.security_fields import SecurityFields
from labconsole_v2x.live.spread import spread
from labconsole_v2x.live.transport_fields import TransportFields

MOST_STATIONS = 300
STANDARD_RATE, LEAST_RATE = 10.0, 1.0
"""EN 302 637-2: a CAM each 100 ms at most, and one a second at least."""
MOST_REMEMBERED = 500_000
"""Packets that a receiver remembers, to recognise a duplicate: some 100 MB."""


class StationFields(Parameters):
    """Stations, and when they send: the last base class of `LiveParameters`, so that the form begins with them."""

    senders: int = parameter(
        "Sending stations",
        "Stations that send CAMs: 1, 5 and 15 are the source's low, medium and high load",
        default=5,
        ge=1,
        le=MOST_STATIONS,
        group="Stations",
    )
    generation: Generation = parameter(
        "CAMs are generated",
        "At a fixed rate, as in the source, or by the rules of EN 302 637-2: 4 degrees, 4 m, 0.5 m/s, 100 ms to 1 s",
        default=Generation.FIXED,
        group="Stations",
        labels=GENERATIONS,
    )
    rate: float = parameter(
        "Rate",
        "CAMs a second of each station, all its instances together; above 10 a CAM sender breaks EN 302 637-2",
        default=10.0,
        ge=1,
        le=1000,
        unit="Hz",
        group="Stations",
        shown_if={"generation": "fixed"},
    )
    instances: int = parameter(
        "Instances",
        "CAM services of each station, each with its own ticket and clock: the source's 100 Hz are ten of 10 Hz",
        default=1,
        ge=1,
        le=100,
        group="Stations",
    )
    dcc: bool = parameter(
        "Congestion control (DCC)",
        "Stations hear the channel and keep the intervals of TS 102 687 (reactive, 6 Mbit/s)",
        default=False,
        group="Stations",
    )
    receivers: Receivers = parameter(
        "Receivers",
        "One station at the roadside, as in the source, or every station",
        default=Receivers.ONE,
        group="Stations",
        labels={"one": "One roadside station", "all": "Every station"},
    )
    receiver_rate: float = parameter(
        "Receiver's rate",
        "CAMs a second of the receiver: they carry its requests for certificates, and count for no figure",
        default=10.0,
        ge=1,
        le=10,
        unit="Hz",
        group="Stations",
        shown_if={"receivers": "one"},
    )
    processes: int = parameter(
        "Sender processes",
        "Processes over which the sending stations are spread; 0: as many as the load needs, at most one for each of "
        "this computer's cores, of which a single receiver has one",
        default=0,
        ge=0,
        le=MOST_STATIONS,
        group="Stations",
    )


class LiveParameters(TransportFields, ReceiverFields, SecurityFields, StationFields):
    """One scenario of the live trial (`preserve-d3.2.txt`, 2.2 and 4.1)."""

    warm_up: float = parameter(
        "Warm-up",
        "Time at the beginning that counts for no figure: the receiver learns tickets and AA from the air meanwhile",
        default=3.0,
        ge=0,
        le=600,
        unit="s",
        group="Run",
    )
    duration: float = parameter("Duration", "Time that counts", default=20.0, ge=0.5, le=86_400, unit="s", group="Run")

    @property
    def instance_rate(self) -> float:
        """CAMs a second of one instance at a fixed rate; the highest that the generation rules allow."""
        return self.rate / self.instances if self.generation is Generation.FIXED else STANDARD_RATE

    @property
    def most_messages(self) -> float:
        """CAMs a second of all senders at a fixed rate; at most so many with the generation rules or DCC."""
        return self.senders * self.instances * self.instance_rate

    @property
    def messages_on_air(self) -> float:
        """Packets a second that a receiver hears at most."""
        return self.most_messages

    @property
    def receiving_stations(self) -> int:
        """How many stations receive."""
        return 1 if self.receivers is Receivers.ONE else self.senders

    @property
    def receptions_a_message(self) -> int:
        """How many stations should receive each CAM of a sender: a station that sends does not receive its own."""
        return 1 if self.receivers is Receivers.ONE else self.senders - 1

    @property
    def sent_and_received(self) -> float:
        """CAMs a second that the processes of the sending stations send and receive at most."""
        receptions = self.receptions_a_message if self.receivers is Receivers.ALL else 0
        return self.most_messages * (1 + receptions)

    @property
    def station_groups(self) -> list[Sequence[int]]:
        """The numbers of the sending stations in each of their processes."""
        return spread(self.senders, self.processes, self.sent_and_received, self.sender_cores)

    @property
    def sender_cores(self) -> int:
        """Cores that processes of sending stations have: a single receiver has one of its own."""
        return (os.cpu_count() or 1) - (self.receivers is Receivers.ONE)

    @property
    def divides_cores(self) -> bool:
        """Whether the thread of a single receiver has a core for itself."""
        return self.receivers is Receivers.ONE and self.threads == 1

    @property
    def checks_plausibility(self) -> bool:
        """Whether receivers check the plausibility of CAMs."""
        return self.plausibility and self.security.verifies

    @property
    def duplicate_window(self) -> int:
        """Accepted packets that a receiver remembers: twice those that the window for CAMs holds, within limits."""
        seconds = (self.cam_past + self.cam_future) / 1000
        return min(MOST_REMEMBERED, max(4096, round(2 * self.most_messages * seconds)))
