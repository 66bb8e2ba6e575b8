"""The receiving side of stations: frames wait in a bounded queue, and threads check them and update the neighbours.

What is measured of a packet begins when its frame is read from the socket and ends when its CAM is decoded, its SSP
checked and the neighbour table updated.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from threading import Lock, Thread
from typing import NamedTuple, Protocol

from labconsole.clock import now_ns
from labconsole.processes import stay_on
from labconsole_v2x.messages import cam
from labconsole_v2x.messages.asn1_modules import MessageError
from labconsole_v2x.messages.btp import BtpError, parse_btp
from labconsole_v2x.messages.cam import Cam
from labconsole_v2x.messages.geonetworking import ETHERTYPE, GeoNetworkingError, carried_payload, secured_octets
from labconsole_v2x.messages.its_time import GENERATION_DELTA_TIME_MODULUS_MS, full_time, its_us, unix_ns
from labconsole_v2x.security.distribution import Distribution
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.verification import ACCEPTED, Outcome, Reason, Verifier
from labconsole_v2x.stations.capture import ETHERNET_HEADER
from labconsole_v2x.stations.neighbours import NeighbourTable
from labconsole_v2x.stations.plausibility import Plausibility
from labconsole_v2x.stations.roadside import read_roadside_message
from labconsole_v2x.stations.sending import packet_hash
from labconsole_v2x.stations.transports import Transport

QUEUE_FULL = "receiver queue full"
"""The reason of a packet that found no room, or was still waiting at the end."""
IMPLAUSIBLE = "implausible content"
"""The reason of a CAM that is rightly signed, and says what is not plausible."""
_LATER = (Reason.REVOKED,)
REASONS = (
    *(one.value for one in Reason if one not in _LATER),
    QUEUE_FULL,
    *(one.value for one in _LATER),
    IMPLAUSIBLE,
)
"""The verdicts on packets, by the numbers under which they are recorded: later ones are appended, none is moved."""
_ACCEPTED = 0
_QUEUE_FULL, _IMPLAUSIBLE = REASONS.index(QUEUE_FULL), REASONS.index(IMPLAUSIBLE)
_NUMBERS = {reason: REASONS.index(reason.value) for reason in Reason}
_ETHERTYPE = ETHERTYPE.to_bytes(2, "big")
_BASIC_HEADER = 4
"""Octets of the GeoNetworking basic header, which no signature protects."""
_LATEST_US = 1 << 53
"""Generation times from here on, in the year 2289, are no times: they are recorded as unreadable."""


class ReceivedFrame(NamedTuple):
    """A frame as it was read from the socket, at a time of `labconsole.clock.now_ns`."""

    source: bytes
    packet: bytes
    received_ns: int


class ReceivedPacket(NamedTuple):
    """What is recorded of a received packet; times are those of `labconsole.clock.now_ns`."""

    receiver: int
    """Number of the station that received it."""
    source: int
    """MAC address of the sender."""
    identity: int
    """generationTime in us (ITS time); of an unsecured packet a hash; 0: unreadable."""
    received_ns: int
    started_ns: int
    verify_ns: int
    """Time of the security checks, from the octets to the verdict; 0 where nothing is verified."""
    done_ns: int
    age_ns: int
    """From the generation time in the packet to `done_ns`, by the wall clock; 0 unless it was accepted."""
    size: int
    """Octets of the GeoNetworking packet."""
    content: int
    """Octets of headers and CAM that were protected, 0 unless it was accepted."""
    reason: int
    """Number in `REASONS`."""
    waited: int
    """1 for a packet that was checked again because a certificate had become known."""


class Checked(NamedTuple):
    """The result of the checks of one packet; `generated_us` is ITS time."""

    reason: int
    identity: int = 0
    message: Cam | None = None
    content: int = 0
    generated_us: int = 0
    verify_ns: int = 0


class PacketCheck(Protocol):
    """The checks of a receiver; none of its methods raises, whatever the octets."""

    def check(self, frame: ReceivedFrame) -> Checked:
        """Check a GeoNetworking packet."""

    def released(self) -> Sequence[ReceivedFrame]:
        """Packets that waited for a certificate which is now known: to be checked again."""


class VerifiedCheck:
    """Verifies secured packets and checks their content; its stations take part in certificate distribution."""

    def __init__(
        self,
        verifier: Verifier,
        distributions: Sequence[Distribution] = (),
        plausibility: Plausibility | None = None,
    ) -> None:
        """Without `plausibility` all that is rightly signed, and permitted, is accepted."""
        self._verifier = verifier
        self._distributions = distributions
        self._plausibility = plausibility

    def check(self, frame: ReceivedFrame) -> Checked:
        try:
            secured = secured_octets(frame.packet)
        except GeoNetworkingError:
            return Checked(_NUMBERS[Reason.MALFORMED])
        if secured is None:
            return Checked(_NUMBERS[Reason.UNSECURED], packet_hash(frame.packet))
        began_ns = now_ns()
        outcome = self._verifier.verify(secured, None, frame)
        verify_ns = now_ns() - began_ns
        if outcome.reason is ACCEPTED:
            self._verifier.check_content(outcome)
            if outcome.message is None:
                read_roadside_message(outcome)
        for distribution in self._distributions:
            distribution.note(outcome)
        generated_us = _readable(outcome.generation_time)
        if outcome.reason is not ACCEPTED:
            return Checked(_NUMBERS[outcome.reason], generated_us, None, 0, generated_us, verify_ns)
        message = outcome.message if isinstance(outcome.message, Cam) else None
        if message is not None and not self._is_plausible(outcome, message, generated_us):
            return Checked(_IMPLAUSIBLE, generated_us, None, 0, generated_us, verify_ns)
        return Checked(_ACCEPTED, generated_us, message, len(outcome.payload or b""), generated_us, verify_ns)

    def _is_plausible(self, outcome: Outcome, message: Cam, generated_us: int) -> bool:
        if self._plausibility is None or outcome.signer is None:
            return True
        return not self._plausibility.check(outcome.signer.hashed_id8, message, generated_us)

    def released(self) -> Sequence[ReceivedFrame]:
        return [origin for _, _, origin in self._verifier.released() if isinstance(origin, ReceivedFrame)]


class UnverifiedCheck:
    """Reads packets, secured or not, and verifies nothing."""

    def check(self, frame: ReceivedFrame) -> Checked:
        try:
            secured = secured_octets(frame.packet)
            if secured is None:
                protected, identity, generated_us = frame.packet[_BASIC_HEADER:], packet_hash(frame.packet), 0
            else:
                data = scan_signed_data(secured)
                generated_us = identity = _readable(data.header.generation_time)
                protected = data.payload or b""
            message = cam.decode(parse_btp(*carried_payload(protected)).payload)
        except (GeoNetworkingError, MalformedDataError):
            return Checked(_NUMBERS[Reason.MALFORMED])
        except (BtpError, MessageError):
            return Checked(_NUMBERS[Reason.CONTENT_MALFORMED])
        if not generated_us:
            near_us = its_us(time.time_ns())
            generated_us = full_time(message.generation_delta_time, GENERATION_DELTA_TIME_MODULUS_MS, near_us)
        return Checked(_ACCEPTED, identity, message, len(protected), generated_us)

    def released(self) -> Sequence[ReceivedFrame]:
        return ()


def _readable(generation_time: int | None) -> int:
    """A generation time in us, 0 for none, or one that is no time."""
    return generation_time if generation_time is not None and generation_time < _LATEST_US else 0


class ReceivingStation:
    """A station that receives: checks packets of others, keeps a neighbour table, and records each packet."""

    def __init__(
        self,
        number: int,
        check: PacketCheck,
        ignored: Collection[bytes],
        record: Callable[[ReceivedPacket], None] | None,
    ) -> None:
        """`ignored` are the MAC addresses of senders that it does not process, such as its own."""
        self.number = number
        self.neighbours = NeighbourTable()
        self._check = check
        self._ignored = ignored
        self._record = record

    def take(self, frame: ReceivedFrame) -> None:
        """Process a frame, and those that waited for a certificate in it; from any thread."""
        if frame.source in self._ignored:
            return
        self._process(frame, 0)
        for waiting in self._check.released():
            self._process(waiting, 1)

    def _process(self, frame: ReceivedFrame, waited: int) -> None:
        started_ns = now_ns()
        checked = self._check.check(frame)
        if checked.message is not None:
            self.neighbours.update(frame.source, checked.message, frame.received_ns)
        done_ns = now_ns()
        if self._record is None:
            return
        age_ns = 0
        if checked.reason == _ACCEPTED:
            age_ns = time.time_ns() - unix_ns(checked.generated_us) - (now_ns() - done_ns)
        self._record(
            ReceivedPacket(
                self.number,
                int.from_bytes(frame.source, "big"),
                checked.identity,
                frame.received_ns,
                started_ns,
                checked.verify_ns,
                done_ns,
                age_ns,
                len(frame.packet),
                checked.content,
                checked.reason,
                waited,
            )
        )


class Reception:
    """Reads frames from a transport into a queue; each thread hands the oldest to the receiving stations."""

    def __init__(
        self,
        transport: Transport,
        stations: Sequence[ReceivingStation],
        *,
        threads: int = 1,
        queue_limit: int = 10_000,
        cores: Collection[int] = (),
        on_frame: Callable[[bytes, int], None] = lambda frame, received_ns: None,
        on_full: Callable[[ReceivedFrame], None] = lambda frame: None,
    ) -> None:
        """Threads stay on `cores`, if any are given. `on_frame` is called with each frame that is read, `on_full` for
        one that finds no room in the queue, or is still there at the end."""
        self._transport = transport
        self._stations = stations
        self._limit = queue_limit
        self._cores = cores
        self._on_frame = on_frame
        self._on_full = on_full
        self._queue: deque[ReceivedFrame] = deque()
        self._turn = Lock()
        self._taken_ns = 0
        """How long the newest frame took: the socket is read for as long at most before the next one is checked."""
        self._ended = False
        self._fault: BaseException | None = None
        self._threads = [Thread(target=self._guarded, name="reception") for _ in range(threads)]

    def start(self) -> None:
        """Start to receive."""
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """Number of frames in the queue."""
        return len(self._queue)

    def check(self) -> None:
        """Raise what ended one of the threads."""
        if self._fault is not None:
            raise self._fault

    def stop(self) -> None:
        """Read no more, end the threads, and leave what is still in the queue to `on_full`."""
        self._ended = True
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        while self._queue:
            self._on_full(self._queue.popleft())

    def _guarded(self) -> None:
        try:
            stay_on(self._cores)
            while (frame := self._next()) is not None:
                began_ns = now_ns()
                for station in self._stations:
                    station.take(frame)
                self._taken_ns = now_ns() - began_ns
        except Exception as fault:  # noqa: BLE001 - raised by `check` in the thread of the role
            self._fault = fault
            self._ended = True

    def _next(self) -> ReceivedFrame | None:
        """The oldest frame that waits; None at the end.

        The thread that is free reads, and checks what it has read: a frame is handed from thread to thread only where
        the socket has more than one. A flood takes half of the time, and what comes during a long check is read.
        """
        with self._turn:
            until_ns = now_ns() + self._taken_ns
            while self._read(wait=False) and now_ns() < until_ns:
                pass
            while not (self._queue or self._ended):
                self._read(wait=True)
            return None if self._ended else self._queue.popleft()

    def _read(self, *, wait: bool) -> bool:
        """Read a frame into the queue; whether there was one."""
        octets = self._transport.receive(wait=wait)
        if octets is None:
            return False
        received_ns = now_ns()
        if octets[12:14] == _ETHERTYPE:
            self._on_frame(octets, received_ns)
            frame = ReceivedFrame(octets[6:12], octets[ETHERNET_HEADER:], received_ns)
            if len(self._queue) < self._limit:
                self._queue.append(frame)
            else:
                self._on_full(frame)
        return True


def full_queue_row(receiver: int, frame: ReceivedFrame) -> ReceivedPacket:
    """The record of a packet that found no room in the queue: nothing of it was read."""
    source, at_ns = int.from_bytes(frame.source, "big"), frame.received_ns
    return ReceivedPacket(receiver, source, 0, at_ns, at_ns, 0, at_ns, 0, len(frame.packet), 0, _QUEUE_FULL, 0)
