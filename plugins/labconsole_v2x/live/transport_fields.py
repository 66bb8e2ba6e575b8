"""The parameters of the transport in the live trial: UDP multicast and unicast, or raw Ethernet."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationInfo, field_validator

from labconsole.model.parameters import Parameters, parameter
from labconsole_v2x.choices import InclusionChoice, Receivers
from labconsole_v2x.stations.sending import SecurityMode
from labconsole_v2x.stations.transports import TransportKind, TransportSettings

LOOPBACK = "lo"
"""The interface on which all raw frames are heard by all."""
_UDP = {"transport": ["udp-multicast", "udp-unicast"]}


def _needs_channel(values: Mapping[str, Any]) -> bool:
    """Whether sending stations measure the channel busy ratio, by these parameters as far as they are valid."""
    omits = values.get("inclusion") is InclusionChoice.CONGESTION and values.get("security") is not SecurityMode.NONE
    return bool(values.get("dcc")) or omits


class TransportFields(Parameters):
    """How frames travel; a model that has these fields has `receivers`, `dcc`, `security` and `inclusion`, too."""

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
    def hears_channel(self) -> bool:
        """Whether sending stations measure the channel busy ratio."""
        return _needs_channel(self.__dict__)

    def transport_settings(self, *, receiver: bool) -> TransportSettings:
        """The transport, on the side of the receiver or of a sender."""
        if self.transport is TransportKind.ETHERNET:
            device = (self.receiver_device if receiver else "") or self.device
            return TransportSettings(self.transport, device, "", 0)
        group = self.group if self.transport is TransportKind.MULTICAST else self.interface
        return TransportSettings(self.transport, self.interface, group, self.port)
