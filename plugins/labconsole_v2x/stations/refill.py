"""Refill of pseudonyms through a roadside unit (RSU): authorization requests as GeoUnicast, relayed to the AA.

A request is encrypted to the AA and its response to the station, so the RSU learns neither the station nor its tickets.
In BTP-B each is one message: a kind, the number of the request, and the octets. Nothing is fragmented.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from queue import Empty, Full, Queue
from threading import Condition, Lock, Thread
from typing import NamedTuple, Self

from labconsole.errors import UserError
from labconsole.safe_text import shown
from labconsole_v2x.messages.btp import HEADER as BTP_HEADER
from labconsole_v2x.messages.btp import BtpError, Port, encode_btp_b, parse_btp
from labconsole_v2x.messages.geonetworking import (
    ETHERTYPE,
    LARGEST_SDU,
    GeoNetworkingError,
    Kind,
    ShortPositionVector,
    UnsecuredPacket,
    parse_packet,
)
from labconsole_v2x.stations.capture import ETHERNET_HEADER
from labconsole_v2x.stations.routes import Movement
from labconsole_v2x.stations.sending import CamSender

NUMBER_SIZE = 8
"""Octets of a request's number, which is random."""
LARGEST_MESSAGE = LARGEST_SDU - BTP_HEADER.size - 1 - NUMBER_SIZE
"""Octets of the largest request or response that fits one packet."""
ATTEMPTS, ATTEMPT_S = 3, 10.0
"""A station sends a request so often, and waits so long for a response each time."""
MOST_REQUESTS, MOST_ANSWERS = 16, 64
"""At an RSU: requests that wait, and answers that are sent again when their request comes again."""
_ETHERTYPE = ETHERTYPE.to_bytes(2, "big")
_LONGEST_REASON = 200
_POLL_S = 0.1


class _Content(IntEnum):
    REQUEST = 0
    RESPONSE = 1
    REFUSAL = 2
    """With the reason as text."""


class _Message(NamedTuple):
    content: _Content
    number: bytes
    octets: bytes

    def encoded(self) -> bytes:
        return encode_btp_b(Port.CERTIFICATE_REQUEST, bytes((self.content,)) + self.number + self.octets)


def _read(frame: bytes) -> tuple[UnsecuredPacket, _Message] | None:
    """The packet and the message of a frame; None for one that is another."""
    if frame[12:14] != _ETHERTYPE:
        return None
    try:
        packet = parse_packet(frame[ETHERNET_HEADER:]).unsecured
        if packet is None or packet.kind is not Kind.GUC:
            return None
        btp = parse_btp(packet.next_header, packet.payload)
        if btp.destination_port != Port.CERTIFICATE_REQUEST or len(btp.payload) <= NUMBER_SIZE:
            return None
        content = _Content(btp.payload[0])
    except (GeoNetworkingError, BtpError, ValueError):
        return None
    return packet, _Message(content, btp.payload[1 : 1 + NUMBER_SIZE], btp.payload[1 + NUMBER_SIZE :])


class RsuRequester:
    """The station's side: `post` in place of the one over HTTP sends a request through an RSU."""

    def __init__(
        self,
        send: Callable[[bytes], None],
        sender: CamSender,
        rsu: ShortPositionVector,
        where: Callable[[], Movement],
        *,
        attempt_s: float = ATTEMPT_S,
    ) -> None:
        """`send` sends a frame; `sender` has the identity, `where` the place of the station."""
        self._send = send
        self._sender = sender
        self._rsu = rsu
        self._where = where
        self._attempt_s = attempt_s
        self._answers: dict[bytes, _Message | None] = {}
        """Of each request that waits."""
        self._changed = Condition()

    def post(self, url: str, octets: bytes) -> bytes:
        """The response to a request; the RSU knows its AA, `url` is for messages alone.

        Raises UserError: it does not fit one packet, the RSU does not answer, or it refuses.
        """
        if len(octets) > LARGEST_MESSAGE:
            raise UserError(
                f"The request to {url} has {len(octets):,} octets, and a packet to the RSU takes {LARGEST_MESSAGE:,}: "
                "ask for fewer permissions, or send it over HTTP."
            )
        request = _Message(_Content.REQUEST, os.urandom(NUMBER_SIZE), octets)
        with self._changed:
            self._answers[request.number] = None
        try:
            for _ in range(ATTEMPTS):
                self._send(self._sender.unicast(self._rsu, request.encoded(), self._where()))
                answer = self._wait(request.number)
                if answer is not None:
                    break
        finally:
            with self._changed:
                del self._answers[request.number]
        if answer is None:
            raise UserError(
                f"The RSU {self._rsu.address.mac.hex(':')} does not answer {ATTEMPTS} requests: check that it is in "
                "range and relays requests."
            )
        if answer.content is _Content.REFUSAL:
            reason = shown(answer.octets[:_LONGEST_REASON].decode(errors="replace"))
            raise UserError(f"The RSU {self._rsu.address.mac.hex(':')} has no response of the AA: {reason}")
        return answer.octets

    def _wait(self, number: bytes) -> _Message | None:
        with self._changed:
            self._changed.wait_for(lambda: self._answers[number] is not None, self._attempt_s)
            return self._answers[number]

    def take(self, frame: bytes) -> bool:
        """Whether a frame answers a request that waits; all others are ignored. From any thread."""
        read = _read(frame)
        if read is None or read[0].sender.address.mac != self._rsu.address.mac:
            return False
        message = read[1]
        with self._changed:
            if message.content is _Content.REQUEST or message.number not in self._answers:
                return False
            self._answers[message.number] = self._answers[message.number] or message
            self._changed.notify_all()
        return True


class _Request(NamedTuple):
    number: bytes
    octets: bytes
    station: ShortPositionVector


class RsuRelay:
    """The RSU's side: posts each request to its AA in a thread, and sends the response back."""

    def __init__(
        self,
        url: str,
        post: Callable[[str, bytes], bytes],
        send: Callable[[bytes], None],
        sender: CamSender,
        where: Movement,
    ) -> None:
        """`post` sends octets to a URL and returns the response; `send` sends a frame."""
        self._url = url
        self._post = post
        self._send = send
        self._sender = sender
        self._where = where
        self._waiting: Queue[_Request] = Queue(MOST_REQUESTS)
        self._known: OrderedDict[bytes, _Message | None] = OrderedDict()
        """The answer to each request by its number, None while it waits; the oldest make room."""
        self._turn = Lock()
        self._ended = False
        self._fault: Exception | None = None
        self._thread = Thread(target=self._work, name="relay")
        self.ignored = 0
        """Requests for which there was no room."""

    def __enter__(self) -> Self:
        """Start to relay."""
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Relay no more; a request to the AA that is in progress is awaited. Raises what ended the thread."""
        self._ended = True
        self._thread.join()
        if self._fault is not None:
            raise self._fault

    def take(self, frame: bytes) -> bool:
        """Whether a frame is a request to this RSU; a repeated one gets the same answer."""
        read = _read(frame)
        if read is None:
            return False
        packet, message = read
        destination = packet.destination
        if message.content is not _Content.REQUEST or destination is None:
            return False
        if destination.address.mac != self._sender.identity.gn_mac:
            return False
        station = ShortPositionVector(*packet.sender[:4])
        with self._turn:
            repeated, answer = message.number in self._known, self._known.get(message.number)
            if not repeated:
                self._accept(_Request(message.number, message.octets, station))
        if answer is not None:
            self._reply(answer, station)
        return True

    def _accept(self, request: _Request) -> None:
        try:
            self._waiting.put_nowait(request)
        except Full:
            self.ignored += 1
            return
        self._known[request.number] = None
        if len(self._known) > MOST_ANSWERS:
            self._known.popitem(last=False)

    def _work(self) -> None:
        try:
            while not self._ended:
                with suppress(Empty):
                    self._relay(self._waiting.get(timeout=_POLL_S))
        except Exception as fault:  # noqa: BLE001 - raised at the end in the thread of the role
            self._fault = fault

    def _relay(self, request: _Request) -> None:
        answer = self._answer(request)
        with self._turn:
            if request.number in self._known:
                self._known[request.number] = answer
        self._reply(answer, request.station)

    def _answer(self, request: _Request) -> _Message:
        try:
            response = self._post(self._url, request.octets)
        except UserError as error:
            return _Message(_Content.REFUSAL, request.number, str(error).encode()[:_LONGEST_REASON])
        if len(response) > LARGEST_MESSAGE:
            reason = f"it has {len(response):,} octets, and one packet takes {LARGEST_MESSAGE:,}."
            return _Message(_Content.REFUSAL, request.number, reason.encode())
        return _Message(_Content.RESPONSE, request.number, response)

    def _reply(self, answer: _Message, station: ShortPositionVector) -> None:
        with suppress(UserError):  # the network has gone: the frame is lost, as on the air
            self._send(self._sender.unicast(station, answer.encoded(), self._where))
