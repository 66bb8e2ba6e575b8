"""Messages of a road-side unit other than CAM and DENM: SPATEM, MAPEM, IVIM and service announcements (SAEM).

They are signed by the generic security profile (TS 103 097, 7.1.3). Their contents are octets here, never decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from labconsole.clock import now_ns
from labconsole_v2x.messages.btp import BtpError, Port, encode_btp_b, parse_btp
from labconsole_v2x.messages.geonetworking import (
    DEFAULT_HOP_LIMIT,
    Address,
    Area,
    GeoNetworkingError,
    PositionVector,
    carried_payload,
    encode_basic_header,
    encode_gbc,
    encode_shb,
)
from labconsole_v2x.messages.its_time import gn_timestamp
from labconsole_v2x.security.keys import SigningKey
from labconsole_v2x.security.signing import PacketSigner
from labconsole_v2x.security.structures import (
    IVIM_PSID,
    MAPEM_PSID,
    SAEM_PSID,
    SPATEM_PSID,
    Certificate,
    Header,
)
from labconsole_v2x.security.verification import Outcome, Reason, its_now
from labconsole_v2x.stations.capture import ethernet_frame
from labconsole_v2x.stations.routes import Movement
from labconsole_v2x.stations.sending import ROADSIDE_UNIT, Identity, SentCam, SequenceNumbers

_LIFETIME_MS = 1000
_CERTIFICATE_US = 1_000_000
"""Each second a message has the whole ticket, as CAMs do: the generic profile leaves it open."""


class RoadsideService(Enum):
    """A service of road-side units: ITS-AID (TS 102 965) and port of BTP-B (TS 103 248) of its messages."""

    SPATEM = (SPATEM_PSID, Port.SPATEM)
    MAPEM = (MAPEM_PSID, Port.MAPEM)
    IVIM = (IVIM_PSID, Port.IVIM)
    SAEM = (SAEM_PSID, Port.SAEM)

    def __init__(self, psid: int, port: Port) -> None:
        self.psid = psid
        self.port = port


_SERVICES = {service.psid: service for service in RoadsideService}


class RoadsideMessage(NamedTuple):
    """A message of a road-side unit as it was received."""

    service: RoadsideService
    content: bytes


class RoadsideSender:
    """Creates the messages of a road-side unit under one ticket, each with another generation time."""

    def __init__(
        self,
        identity: Identity,
        ticket: Certificate,
        key: SigningKey,
        place: Movement,
        clock: Callable[[], int] = its_now,
    ) -> None:
        """`clock` returns ITS time in us."""
        self.identity = identity
        self.ticket = ticket
        self._place = place
        self._signer = PacketSigner(ticket, key)
        self._clock = clock
        self._last_us = 0
        self._certificate_us = -_CERTIFICATE_US
        self._sequence_numbers = SequenceNumbers()

    def create(self, service: RoadsideService, content: bytes, area: Area | None = None) -> SentCam:
        """A message to all stations in reach (SHB), or by GeoBroadcast to those in an area."""
        generated_us = max(self._clock(), self._last_us + 1)
        self._last_us = generated_us
        with_certificate = generated_us - self._certificate_us >= _CERTIFICATE_US
        if with_certificate:
            self._certificate_us = generated_us
        hops, payload = self._payload(encode_btp_b(service.port, content), area, generated_us)
        header = Header(service.psid, generated_us)
        began_ns = now_ns()
        secured = self._signer.sign(payload, header, include_certificate=with_certificate)
        sign_ns = now_ns() - began_ns
        packet = encode_basic_header(_LIFETIME_MS, hops, secured=True) + secured
        return SentCam(ethernet_frame(packet, self.identity.mac), generated_us, sign_ns, with_certificate)

    def _payload(self, message: bytes, area: Area | None, its_us: int) -> tuple[int, bytes]:
        """The hop limit, and the GeoNetworking packet from its common header on."""
        latitude, longitude = self._place.latitude, self._place.longitude
        address = Address(self.identity.mac, ROADSIDE_UNIT)
        vector = PositionVector(address, gn_timestamp(its_us), latitude, longitude, True)
        if area is None:
            return 1, encode_shb(vector, message, mobile=False)
        number = self._sequence_numbers.next_packet()
        return DEFAULT_HOP_LIMIT, encode_gbc(vector, area, number, message, mobile=False)


def read_roadside_message(outcome: Outcome) -> RoadsideMessage | None:
    """The message of an accepted packet; None where it was not accepted or is of another service.

    The outcome becomes a rejection where the port is not that of the ITS-AID: who may announce services may not
    send signal phases.
    """
    service = None if outcome.psid is None else _SERVICES.get(outcome.psid)
    if service is None or not outcome.accepted or outcome.payload is None:
        return None
    try:
        packet = parse_btp(*carried_payload(outcome.payload))
    except (GeoNetworkingError, BtpError) as error:
        outcome.reason, outcome.detail = Reason.CONTENT_MALFORMED, str(error)
        return None
    if packet.destination_port != service.port:
        outcome.reason = Reason.PERMISSION_MISSING
        outcome.detail = f"port {packet.destination_port} under the ITS-AID of {service.name}"
        return None
    return RoadsideMessage(service, packet.payload)
