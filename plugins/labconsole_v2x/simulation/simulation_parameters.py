"""The parameters of the simulated testbed: what the form shows and a profile sets."""

from __future__ import annotations

from enum import StrEnum

from pydantic import ValidationInfo, field_validator

from labconsole.errors import UserError
from labconsole.model.parameters import parameter
from labconsole.model.trial import STORED, Origin
from labconsole_v2x.attacks.attack_fields import AttackFields
from labconsole_v2x.choices import GENERATIONS, INCLUSIONS, Attack, Generation, InclusionChoice
from labconsole_v2x.simulation.medium import BEST_EFFORT, CAPTURE_DB, Radio
from labconsole_v2x.simulation.stack_timing import STACK_TIMINGS, StackTiming
from labconsole_v2x.stations.sending import SecurityMode

INSTANCE_HZ = 10.0
"""Most CAMs a second of one instance: higher rates are several, as the source's 100 Hz are ten of 10 Hz."""
MOST_PACKETS = 2_000_000
"""Packets of a run, all of which are in memory at once: some 400 MB and half a minute, with DCC about a minute."""
_LARGEST = 10_000
"""Packets beyond GeoNetworking can be simulated: post-quantum signatures do not fit it."""
_STATIONS, _CHANNEL, _PACKETS, _RUN = "Stations", "Radio channel", "Packets", "Run"
_SHARED = {"medium": "edca"}


class MediumChoice(StrEnum):
    """How frames share the radio channel."""

    EDCA = "edca"
    IDEAL = "ideal"


class SimulationParameters(AttackFields):
    """One scenario of the simulated testbed (`preserve-d3.2.txt`, 2.2, 4.1 and Table 4.1)."""

    senders: int = parameter(
        "Sending stations", "Benign stations that send CAMs", default=5, ge=1, le=300, group=_STATIONS
    )
    generation: Generation = parameter(
        "CAMs are generated",
        "At a fixed rate, or on moving vehicles by the rules of EN 302 637-2: at 1 to 10 Hz",
        default=Generation.FIXED,
        group=_STATIONS,
        labels=GENERATIONS,
    )
    rate: float = parameter(
        "Rate",
        "CAMs a second of each station; above 10 they are several instances of 10 Hz at most, as in the source",
        default=10.0,
        ge=1,
        le=1000,
        unit="Hz",
        group=_STATIONS,
        shown_if={"generation": "fixed"},
    )
    dcc: bool = parameter(
        "Congestion control (DCC)",
        "Stations hear the channel and keep the intervals of TS 102 687 (reactive, 6 Mbit/s)",
        default=False,
        group=_STATIONS,
    )
    security: SecurityMode = parameter(
        "Configuration",
        "Security of each CAM, as far as the timing profile has it",
        default=SecurityMode.FULL,
        group=_STATIONS,
        labels={
            "full": "Full security: signed and verified",
            "signed": "Signed, not verified",
            "header": "Header, not signed",
            "none": "No security header",
        },
    )
    timing: str = parameter(
        "Timing profile",
        "How long the stacks of the stations take for a packet, and how many find room in them",
        default="nexcom-vtc6201-table42",
        group=_STATIONS,
        choices=STACK_TIMINGS.names,
    )
    receiver_cores: int = parameter(
        "Cores of the receiver",
        "Packets that the receiver's stack serves at the same time, each in the profile's time",
        default=1,
        ge=1,
        le=64,
        group=_STATIONS,
    )

    medium: MediumChoice = parameter(
        "Medium",
        "IEEE 802.11p with contention and collisions, or a channel on which every frame arrives after its airtime",
        default=MediumChoice.EDCA,
        group=_CHANNEL,
        labels={"edca": "802.11p at 6 Mbit/s (EDCA)", "ideal": "Ideal: no contention, no collision"},
    )
    aifsn: int = parameter(
        "AIFSN",
        "Slots for which the medium must be idle before a backoff counts; CAMs have access category best effort, with "
        "6, and stations without EDCA 2",
        default=BEST_EFFORT.aifsn,
        ge=2,
        le=15,
        group=_CHANNEL,
        shown_if=_SHARED,
    )
    cw_min: int = parameter(
        "CWmin",
        "A backoff has 0 to so many slots",
        default=BEST_EFFORT.cw_min,
        ge=1,
        le=1023,
        group=_CHANNEL,
        shown_if=_SHARED,
    )
    power_spread: float = parameter(
        "Spread of received power",
        f"Standard deviation between stations. Of frames that collide, one that is stronger by {CAPTURE_DB:g} dB is "
        "received; with 0, none is",
        default=BEST_EFFORT.spread_db,
        ge=0,
        le=30,
        unit="dB",
        group=_CHANNEL,
        shown_if=_SHARED,
    )

    inclusion: InclusionChoice = parameter(
        "Certificate in CAMs",
        "When a CAM carries the whole ticket instead of its digest; no station requests one here",
        default=InclusionChoice.ETSI,
        group=_PACKETS,
        labels=INCLUSIONS,
    )
    size_digest: int = parameter(
        "Size with digest",
        "Octets of a packet with security header",
        default=180,
        ge=1,
        le=_LARGEST,
        unit="B",
        group=_PACKETS,
    )
    size_certificate: int = parameter(
        "Size with certificate",
        "Octets of a packet with the whole certificate",
        default=450,
        ge=1,
        le=_LARGEST,
        unit="B",
        group=_PACKETS,
    )
    size_unsecured: int = parameter(
        "Size without security",
        "Octets of a packet without security header: what a secured one protects",
        default=89,
        ge=1,
        le=1398,
        unit="B",
        group=_PACKETS,
    )

    warm_up: float = parameter(
        "Warm-up", "Time at the beginning that counts for no figure", default=2.0, ge=0, le=600, unit="s", group=_RUN
    )
    duration: float = parameter(
        "Duration", "Time that counts, by the virtual clock", default=60.0, ge=0.5, le=3600, unit="s", group=_RUN
    )

    @field_validator("attack")
    @classmethod
    def _sends_packets(cls, attack: Attack) -> Attack:
        if attack is Attack.TRACKING:
            raise ValueError("a tracker reads what is in packets, and simulated ones have no content: run v2x.attack")
        return attack

    @field_validator("timing")
    @classmethod
    def _has_the_times(cls, timing: str, info: ValidationInfo) -> str:
        """Of a stored run the profile may be missing by now."""
        stored = info.context and info.context.get(STORED)
        if not stored and {"security", "attack"} <= info.data.keys():
            _timing_of(timing, info.data["security"], info.data["attack"])
        return timing

    @field_validator("size_unsecured")
    @classmethod
    def _is_the_smallest(cls, size: int, info: ValidationInfo) -> int:
        secured = [info.data[name] for name in ("size_digest", "size_certificate") if name in info.data]
        if size >= min(secured, default=size + 1):
            raise ValueError("a packet without security is smaller than one with it: change one of the sizes")
        return size

    @field_validator("duration")
    @classmethod
    def _is_computed_at_once(cls, duration: float, info: ValidationInfo) -> float:
        """The field comes last: a form shows the fault there."""
        values = info.data
        needed = {"senders", "generation", "rate", "attack", "attackers", "attack_rate", "warm_up"}
        if needed <= values.keys():
            attacks = 0.0 if values["attack"] is Attack.NONE else values["attackers"] * values["attack_rate"]
            rate = values["rate"] if values["generation"] is Generation.FIXED else INSTANCE_HZ
            packets = (values["senders"] * rate + attacks) * (values["warm_up"] + duration)
            if packets > MOST_PACKETS:
                raise ValueError(
                    f"these are {packets:,.0f} packets, and {MOST_PACKETS:,} can be simulated: shorten the duration"
                )
        return duration

    @property
    def origin(self) -> Origin:
        return Origin.SIMULATED

    @property
    def hears_channel(self) -> bool:
        """Whether stations change by the channel busy ratio."""
        return self.dcc or self.inclusion is InclusionChoice.CONGESTION

    @property
    def benign_messages(self) -> float:
        """CAMs a second of all benign stations; by the generation rules or with DCC: at most."""
        return self.senders * (self.rate if self.generation is Generation.FIXED else INSTANCE_HZ)

    def radio(self) -> Radio:
        """The radio channel of a shared medium."""
        return Radio(self.aifsn, self.cw_min, self.power_spread)

    def stack_timing(self) -> StackTiming:
        """The timing profile. Raises UserError: it is broken, or has no time of these packets."""
        try:
            return _timing_of(self.timing, self.security, self.attack)
        except ValueError as error:
            raise UserError(f"{error}.") from error


def _timing_of(name: str, security: SecurityMode, attack: Attack) -> StackTiming:
    """A timing profile that has the times of these packets. Raises ValueError, without the full stop."""
    try:
        timing = STACK_TIMINGS.load(name)
    except UserError as error:
        raise ValueError(str(error).rstrip(".")) from error
    if missing := timing.missing(security, attack):
        raise ValueError(f"The timing profile {name} has no {missing}: choose another profile or scenario")
    return timing
