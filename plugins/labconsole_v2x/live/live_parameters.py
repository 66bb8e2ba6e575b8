"""The parameters of the live trial: stations, rates, security, receiver and transport."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import ValidationInfo, field_validator

from labconsole.model.operation import HomePath
from labconsole.model.parameters import Parameters, parameter
from labconsole.operations.configured_tokens import token_name
from labconsole.security.token.configuration import LAB
from labconsole_v2x.choices import (
    BACKENDS,
    CHANGES,
    CHANGING,
    CURVE_TITLES,
    GENERATIONS,
    INCLUSIONS,
    ChangeChoice,
    CurveChoice,
    Generation,
    InclusionChoice,
    Order,
    Receivers,
)
from labconsole_v2x.live.spread import spread
from labconsole_v2x.security.backends import Backend
from labconsole_v2x.security.verification import CheckSettings
from labconsole_v2x.stations.plausibility import RADIO_RANGE_M
from labconsole_v2x.stations.sending import SecurityMode
from labconsole_v2x.stations.transports import TransportKind, TransportSettings

MOST_STATIONS = 300
MOST_TICKETS = 10_000
"""Of all instances: a ticket takes 0.3 ms to create and to issue."""
LOOPBACK = "lo"
"""The interface on which all raw frames are heard by all."""
STANDARD_RATE, LEAST_RATE = 10.0, 1.0
"""EN 302 637-2: a CAM each 100 ms at most, and one a second at least."""
MOST_REMEMBERED = 500_000
"""Packets that a receiver remembers, to recognise a duplicate: some 100 MB."""


_SECURED = {"security": ["full", "signed", "header"]}
_SIGNED = {"security": ["full", "signed"]}
_VERIFIED = {"security": "full"}
_UDP = {"transport": ["udp-multicast", "udp-unicast"]}
_DEFAULTS = CheckSettings()


def _needs_channel(values: Mapping[str, Any]) -> bool:
    """Whether sending stations measure the channel busy ratio, by these parameters as far as they are valid."""
    omits = values.get("inclusion") is InclusionChoice.CONGESTION and values.get("security") is not SecurityMode.NONE
    return bool(values.get("dcc")) or omits


def _window(title: str, description: str, default_us: int, longest_ms: int) -> Any:
    return parameter(
        title,
        description,
        default=default_us / 1000,
        ge=0,
        le=longest_ms,
        unit="ms",
        group="Acceptance",
        shown_if=_VERIFIED,
    )


def plausibility(*, default: bool, shown_if: Mapping[str, Any]) -> Any:
    """The field of the plausibility checks."""
    return parameter(
        "Plausibility checks",
        "Reject rightly signed CAMs whose content is implausible: position jumps, false speeds, station IDs of others",
        default=default,
        group="Receiver",
        shown_if=shown_if,
    )


def radio_range(*, shown_if: Mapping[str, Any]) -> Any:
    """The field of the radio range."""
    return parameter(
        "Radio range",
        "A CAM from a position further away than this is implausible",
        default=RADIO_RANGE_M,
        ge=100,
        le=100_000,
        unit="m",
        group="Receiver",
        shown_if=shown_if,
    )


def change_interval(*, default: float) -> Any:
    """The field of the interval of identity changes."""
    return parameter(
        "Interval of changes",
        "Time between two changes of an instance; not all at once, each is up to a fifth shorter or longer",
        default=default,
        ge=1,
        le=86_400,
        unit="s",
        group="Pseudonyms",
        shown_if={**_SECURED, "change": [one.value for one in CHANGING]},
    )


class LiveParameters(Parameters):
    """One scenario of the live trial (`preserve-d3.2.txt`, 2.2 and 4.1)."""

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

    security: SecurityMode = parameter(
        "Configuration",
        "Security of each CAM: the source's four configurations",
        default=SecurityMode.FULL,
        group="Security",
        labels={
            "full": "Full security: signed and verified",
            "signed": "Signed, not verified (Fig. 4.4)",
            "header": "Header, neither signed nor verified (Fig. 4.3)",
            "none": "No security header",
        },
    )
    inclusion: InclusionChoice = parameter(
        "Certificate in CAMs",
        "When a CAM carries the whole ticket instead of its digest; never: the receiver knows all tickets before",
        default=InclusionChoice.ETSI,
        group="Security",
        labels=INCLUSIONS,
        shown_if=_SECURED,
    )
    curve: CurveChoice = parameter(
        "Tickets' curve",
        "Curve of the stations' keys; P-256 is what tickets have on the road",
        default=CurveChoice.P256,
        group="Security",
        labels=CURVE_TITLES,
        shown_if=_SECURED,
    )
    authority_curve: CurveChoice = parameter(
        "AA's curve",
        "Curve of the authorization authority's key",
        default=CurveChoice.P256,
        group="Security",
        labels=CURVE_TITLES,
        shown_if=_SECURED,
    )
    root_curve: CurveChoice = parameter(
        "Root CA's curve",
        "Curve of the root CA's key; the hash goes with it, so that chains can mix SHA-256 and SHA-384",
        default=CurveChoice.P256,
        group="Security",
        labels=CURVE_TITLES,
        shown_if=_SECURED,
    )
    compressed_r: bool = parameter(
        "R as compressed point",
        "Signatures have the point R, as on the road, and not only its x: computing it triples the time to sign",
        default=False,
        group="Security",
        shown_if={**_SIGNED, "signing": "openssl"},
    )
    change: ChangeChoice = parameter(
        "Identity changes",
        "When a station takes another ticket, and with it other addresses, station ID and path history",
        default=ChangeChoice.NONE,
        group="Pseudonyms",
        labels=CHANGES,
        shown_if=_SECURED,
    )
    change_interval: float = change_interval(default=60.0)
    tickets: int = parameter(
        "Tickets",
        "Authorization tickets of each instance, issued before the run; fresh ones are used before used ones",
        default=1,
        ge=1,
        le=100,
        group="Pseudonyms",
        shown_if=_SECURED,
    )
    signing: Backend = parameter(
        "Signed by",
        "Where stations sign: software, or a token in the place of the source's ASIC",
        default=Backend.OPENSSL,
        group="Backends",
        labels={key: label for key, label in BACKENDS.items() if key != Backend.AWS_LC.value},
        choices=(Backend.OPENSSL.value, Backend.TOKEN.value),
        shown_if=_SIGNED,
    )
    verification: Backend = parameter(
        "Verified by",
        "Where the receiver verifies; AWS-LC is faster for P-256, other curves are verified by OpenSSL then",
        default=Backend.OPENSSL,
        group="Backends",
        labels=BACKENDS,
        shown_if=_VERIFIED,
    )
    token: Annotated[str, token_name(group="Backends", shown_if=_SIGNED)] = LAB

    order: Order = parameter(
        "Order of checks",
        "Time, duplicate, ITS-AID, region and validity before the signature, or after it as in the source's kit",
        default=Order.CHEAP_FIRST,
        group="Receiver",
        labels={"cheap-first": "Cheap checks first", "signature-first": "Signature first"},
        shown_if=_VERIFIED,
    )
    threads: int = parameter(
        "Verifying threads",
        "Threads of each process that check packets and decode CAMs",
        default=1,
        ge=1,
        le=16,
        group="Receiver",
    )
    queue_limit: int = parameter(
        "Receiver queue",
        "Packets that wait in a receiver at most; further ones are lost there",
        default=10_000,
        ge=1,
        le=1_000_000,
        unit="packets",
        group="Receiver",
    )
    roots: tuple[HomePath, ...] = parameter(
        "Further trusted roots",
        "Certificates (COER) of root CAs of other stations on this transport that the receiver trusts, too",
        default=(),
        kind="file",
        group="Receiver",
        shown_if=_VERIFIED,
    )
    plausibility: bool = plausibility(default=False, shown_if=_VERIFIED)
    radio_range: float = radio_range(shown_if={**_VERIFIED, "plausibility": True})
    capture: bool = parameter(
        "Keep a capture",
        "Keep each packet that a receiver hears, its own too, as a pcapng file with the run: Wireshark opens it",
        default=True,
        group="Receiver",
    )

    cam_past: float = _window(
        "CAM: late by", "A CAM older than this is rejected", _DEFAULTS.cam_window.past_us, 600_000
    )
    cam_future: float = _window(
        "CAM: early by", "A CAM further in the future is rejected", _DEFAULTS.cam_window.future_us, 600_000
    )
    denm_past: float = _window(
        "DENM: late by", "A DENM older than this is rejected", _DEFAULTS.denm_window.past_us, 86_400_000
    )
    denm_future: float = _window(
        "DENM: early by", "A DENM further in the future is rejected", _DEFAULTS.denm_window.future_us, 600_000
    )
    other_past: float = _window(
        "Others: late by", "Another message older than this is rejected", _DEFAULTS.other_window.past_us, 86_400_000
    )
    other_future: float = _window(
        "Others: early by",
        "Another message further in the future is rejected",
        _DEFAULTS.other_window.future_us,
        600_000,
    )

    transport: TransportKind = parameter(
        "Transport",
        "Multicast: all hear all. Unicast: senders and one receiver. Raw Ethernet: Linux, with the rights for it",
        default=TransportKind.MULTICAST,
        group="Transport",
        labels={
            "udp-multicast": "UDP multicast",
            "udp-unicast": "UDP unicast",
            "ethernet": "Raw Ethernet (0x8947)",
        },
    )
    interface: str = parameter(
        "Interface",
        "Address of the interface that UDP uses: 127.0.0.1 is this computer alone",
        default="127.0.0.1",
        min_length=1,
        group="Transport",
        kind="host",
        shown_if=_UDP,
    )
    group: str = parameter(
        "Multicast group",
        "IPv4 address of the group",
        default="239.118.122.97",
        min_length=1,
        group="Transport",
        shown_if={"transport": "udp-multicast"},
    )
    port: int = parameter(
        "Port",
        "UDP port; a multicast run shares it with other stations of the group",
        default=8947,
        ge=1,
        le=65_535,
        group="Transport",
        kind="port",
        shown_if=_UDP,
    )
    device: str = parameter(
        "Senders' interface",
        "Name of the network interface on which senders send: lo, or one end of a veth pair",
        default=LOOPBACK,
        min_length=1,
        group="Transport",
        shown_if={"transport": "ethernet"},
    )
    receiver_device: str = parameter(
        "Receiver's interface",
        "Name of the receiver's interface; empty: that of the senders",
        default="",
        empty="That of the senders",
        group="Transport",
        shown_if={"transport": "ethernet"},
    )

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

    # What does not go together is a fault of the field that comes last, so that a form can show it there.

    @field_validator("signing")
    @classmethod
    def _check_signing(cls, signing: Backend) -> Backend:
        if signing is Backend.AWS_LC:
            raise ValueError("AWS-LC is a backend for verification only: set `signing` to openssl or token")
        return signing

    @field_validator("tickets")
    @classmethod
    def _check_tickets(cls, tickets: int, info: ValidationInfo) -> int:
        if info.data.get("security") is SecurityMode.NONE:
            return tickets
        if tickets < 2 and info.data.get("change", ChangeChoice.NONE) is not ChangeChoice.NONE:
            raise ValueError("a station with one ticket cannot change its identity: give each 2 or more")
        everyone = info.data.get("senders", 1) * info.data.get("instances", 1) * tickets
        if everyone > MOST_TICKETS and tickets > 1:
            raise ValueError(f"these stations would have {everyone:,} tickets: give them {MOST_TICKETS:,} at most")
        return tickets

    @field_validator("transport")
    @classmethod
    def _check_transport(cls, transport: TransportKind, info: ValidationInfo) -> TransportKind:
        if transport is TransportKind.UNICAST:
            if info.data.get("receivers") is Receivers.ALL:
                raise ValueError("in unicast only one station receives: set `receivers` to one, or use multicast")
            if _needs_channel(info.data):
                raise ValueError(
                    "in unicast stations do not hear the channel: choose multicast, or no DCC and omission"
                )
        return transport

    @field_validator("interface", "group")
    @classmethod
    def _check_address(cls, address: str, info: ValidationInfo) -> str:
        try:
            found = ipaddress.IPv4Address(address)
        except ValueError as error:
            raise ValueError(f"{address} is not an IPv4 address, such as 127.0.0.1") from error
        if info.field_name == "group" and not found.is_multicast:
            raise ValueError(f"{address} is not a multicast address: give one from 224.0.0.0 to 239.255.255.255")
        return address

    @field_validator("device")
    @classmethod
    def _check_device(cls, device: str, info: ValidationInfo) -> str:
        if info.data.get("transport") is not TransportKind.ETHERNET or device == LOOPBACK:
            return device
        if info.data.get("receivers") is Receivers.ALL or _needs_channel(info.data):
            raise ValueError(
                "stations on one interface do not hear each other, except on lo: choose lo or UDP multicast, or one "
                "receiver, without DCC and omission by congestion"
            )
        return device

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
    def hears_channel(self) -> bool:
        """Whether sending stations measure the channel busy ratio."""
        return _needs_channel(self.__dict__)

    @property
    def checks_plausibility(self) -> bool:
        """Whether receivers check the plausibility of CAMs."""
        return self.plausibility and self.security.verifies

    @property
    def duplicate_window(self) -> int:
        """Accepted packets that a receiver remembers: twice those that the window for CAMs holds, within limits."""
        seconds = (self.cam_past + self.cam_future) / 1000
        return min(MOST_REMEMBERED, max(4096, round(2 * self.most_messages * seconds)))

    @property
    def windows_us(self) -> list[list[int]]:
        """Acceptance windows, past and future in us, of CAM, DENM and others."""
        pairs = (
            (self.cam_past, self.cam_future),
            (self.denm_past, self.denm_future),
            (self.other_past, self.other_future),
        )
        return [[round(past * 1000), round(future * 1000)] for past, future in pairs]

    def transport_settings(self, *, receiver: bool) -> TransportSettings:
        """The transport, on the side of the receiver or of a sender."""
        if self.transport is TransportKind.ETHERNET:
            device = (self.receiver_device if receiver else "") or self.device
            return TransportSettings(self.transport, device, "", 0)
        group = self.group if self.transport is TransportKind.MULTICAST else self.interface
        return TransportSettings(self.transport, self.interface, group, self.port)
