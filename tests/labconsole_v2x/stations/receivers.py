"""Receiving stations with real sockets, and packets of a lab PKI that are sent to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from labconsole_v2x.messages.geonetworking import encode_basic_header
from labconsole_v2x.security.trust import TrustStore
from labconsole_v2x.security.verification import CheckOrder, CheckSettings, Verifier
from labconsole_v2x.stations.capture import ethernet_frame
from labconsole_v2x.stations.receiving import (
    REASONS,
    PacketCheck,
    ReceivedPacket,
    ReceivingStation,
    Reception,
    VerifiedCheck,
)
from labconsole_v2x.stations.transports import Transport, TransportKind, TransportSettings, open_transport
from tests.helpers.udp_ports import free_udp_port
from tests.labconsole_v2x.security.lab_certificates import (
    NOW_US,
    Holder,
    cam_payload,
    root_authority,
    signed_cam,
    ticket,
    ticket_authority,
)

ROOT = root_authority()
AUTHORITY = ticket_authority(ROOT)
TICKET = ticket(AUTHORITY)
MAC = bytes.fromhex("020000000001")
BASIC = encode_basic_header(1000, 1, secured=True)
UNSECURED = encode_basic_header(1000, 1) + cam_payload()


def secured(data: bytes) -> bytes:
    """Signed data in a GeoNetworking packet."""
    return BASIC + data


def cam_at(time_us: int, **settings: Any) -> bytes:
    return secured(signed_cam(TICKET, time_us, **settings))


def new_trust(*authorities: Holder) -> TrustStore:
    trust = TrustStore()
    trust.add_root(ROOT.certificate)
    for authority in authorities:
        assert trust.add(authority.certificate) is None
    return trust


def verified_check(order: CheckOrder = CheckOrder.CHEAP_FIRST, *, trust: TrustStore | None = None) -> VerifiedCheck:
    """The checks of a receiver that knows root and AA, at the time of the lab's packets."""
    trust = trust or new_trust(AUTHORITY)
    settings = CheckSettings(order=order, decode_content=False)  # as in a run: the content is checked afterwards
    return VerifiedCheck(Verifier(trust, settings, clock=lambda: NOW_US))


class Receiver:
    """A station with a real socket, and a sender that sends to it."""

    def __init__(self, reception: Reception, sender: Transport, stations: list[ReceivingStation]) -> None:
        self.reception = reception
        self.stations = stations
        self.rows: list[ReceivedPacket] = []
        self._sender = sender

    def send(self, *packets: bytes, source: bytes = MAC) -> None:
        for packet in packets:
            self._sender.send(ethernet_frame(packet, source))

    def send_frame(self, frame: bytes) -> None:
        self._sender.send(frame)

    def wait_for(self, count: int) -> list[ReceivedPacket]:
        """The rows, once there are so many."""
        deadline = time.monotonic() + 60
        while len(self.rows) < count and time.monotonic() < deadline:
            self.reception.check()
            time.sleep(0.002)
        return self.rows

    def outcomes(self) -> list[tuple[str, int]]:
        """Reason and `waited` of each row."""
        return [(REASONS[row.reason], row.waited) for row in self.rows]


@contextmanager
def receiving(*checks: PacketCheck, ignored: tuple[bytes, ...] = (), **settings: Any) -> Iterator[Receiver]:
    """A receiver that runs; at the end it has processed what it received, and none of its threads has failed."""
    target = TransportSettings(TransportKind.UNICAST, "127.0.0.1", "127.0.0.1", free_udp_port())
    with ExitStack() as resources:
        transports = [
            resources.enter_context(closing(open_transport(target, receiver=receiver))) for receiver in (True, False)
        ]
        rows: list[ReceivedPacket] = []
        record: Callable[[ReceivedPacket], None] = settings.pop("record", rows.append)
        stations = [ReceivingStation(number, check, ignored, record) for number, check in enumerate(checks)]
        reception = Reception(transports[0], stations, **settings)
        receiver = Receiver(reception, transports[1], stations)
        receiver.rows = rows
        resources.callback(reception.stop)
        reception.start()
        yield receiver
        reception.stop()
        reception.check()
