"""The sending side of stations: a thread that creates and sends each CAM when it is due (open loop)."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from math import ceil
from threading import Thread
from typing import NamedTuple

from labconsole.clock import now_ns
from labconsole.processes import stay_on
from labconsole_v2x.stations.cam_timing import CamTiming
from labconsole_v2x.stations.capture import ETHERNET_HEADER
from labconsole_v2x.stations.channel import ChannelLoad, ReactiveDcc
from labconsole_v2x.stations.identity_change import IdentityChanger
from labconsole_v2x.stations.routes import Route
from labconsole_v2x.stations.sending import PacketSender
from labconsole_v2x.stations.transports import Transport

_LONGEST_SLEEP_S = 0.02
_GRACE_NS = 400_000_000
"""After the end, what was due before is sent for so long: receivers wait half a second for it."""
_GENERATION_NS = 50_000_000
"""In this time a CAM is generated once it is due (EN 302 637-2, 6.1.5): its position may be so old."""


class SentPacket(NamedTuple):
    """What is recorded of a CAM that was sent; times are those of `labconsole.clock.now_ns`."""

    station: int
    source: int
    """MAC address as a number."""
    identity: int
    """generationTime in us (ITS time); without a security header a hash of the packet."""
    due_ns: int
    sent_ns: int
    sign_ns: int
    size: int
    """Octets of the GeoNetworking packet."""
    certificate: int
    """1 where it carries the whole certificate."""


class Instance:
    """A CAM service of a station: one identity at a time, one clock."""

    def __init__(
        self,
        station: int,
        number: int,
        route: Route,
        sender: PacketSender,
        timing: CamTiming,
        changer: IdentityChanger | None = None,
    ) -> None:
        self.station = station
        self.number = number
        self.route = route
        self.sender = sender
        self.timing = timing
        self.changer = changer
        """Changes the identity when it is due; None: it stays."""
        self.dcc = ReactiveDcc()

    @property
    def source(self) -> int:
        """The MAC address as a number."""
        return int.from_bytes(self.sender.identity.mac, "big")


class Transmission:
    """Sends the CAMs of its instances until the end; a station can be stopped and started meanwhile."""

    def __init__(
        self,
        transport: Transport,
        instances: Sequence[Instance],
        record: Callable[[SentPacket], None],
        *,
        dcc: bool = False,
        load: ChannelLoad | None = None,
        cores: Collection[int] = (),
    ) -> None:
        """`load`: the channel as the stations hear it, for `dcc` and congestion-based omission of certificates. The
        thread that sends stays on `cores`, if any are given."""
        self._transport = transport
        self._instances = instances
        self._record = record
        self._dcc = dcc
        self._load = load
        self._cores = cores
        self._stopped: set[int] = set()
        self._ended = False
        self._fault: BaseException | None = None
        self._thread = Thread(target=self._guarded, name="sender")
        self.sent_by: Counter[int] = Counter()
        """CAMs that were sent, by station."""
        self.skipped = 0
        """Due times without a CAM because of DCC."""
        self.too_late = 0
        """Due times that had passed when the time to send was over: this computer is too slow for its senders."""

    def start(self, begin_ns: int, end_ns: int) -> None:
        """Start to send what is due from the one time until the other."""
        self._begin_ns, self._end_ns = begin_ns, end_ns
        for instance in self._instances:
            instance.timing.begin(begin_ns)
            if instance.changer is not None:
                instance.changer.schedule.begin(begin_ns)
        self._thread.start()

    @property
    def sent(self) -> int:
        """CAMs that were sent."""
        return self.sent_by.total()

    @property
    def running(self) -> bool:
        """Whether CAMs are still due. Raises what ended the thread."""
        if self._fault is not None:
            raise self._fault
        return self._thread.is_alive()

    def switch(self, station: int, *, on: bool) -> None:
        """Let a station send, or not."""
        (self._stopped.discard if on else self._stopped.add)(station)

    def is_on(self, station: int) -> bool:
        """Whether a station sends."""
        return station not in self._stopped

    def stop(self) -> None:
        """Send no more, and end the thread."""
        self._ended = True
        if self._thread.ident is not None:
            self._thread.join()

    def _guarded(self) -> None:
        try:
            stay_on(self._cores)
            self._send_all()
        except Exception as fault:  # noqa: BLE001 - raised by `running` in the thread of the role
            self._fault = fault

    def _send_all(self) -> None:
        waiting = [(one.timing.due_ns, number) for number, one in enumerate(self._instances)]
        heapq.heapify(waiting)
        while not self._ended:
            due_ns, number = waiting[0]
            if due_ns >= self._end_ns:
                return
            if now_ns() >= self._end_ns + _GRACE_NS:
                self._count_too_late(waiting)
                return
            left_s = (due_ns - now_ns()) / 1e9
            if left_s > 0:
                time.sleep(min(_LONGEST_SLEEP_S, left_s))
                continue
            instance = self._instances[number]
            self._send(instance, due_ns)
            instance.timing.advance()
            heapq.heapreplace(waiting, (instance.timing.due_ns, number))

    def _count_too_late(self, waiting: list[tuple[int, int]]) -> None:
        for due_ns, number in waiting:
            timing = self._instances[number].timing
            if self.is_on(self._instances[number].station):
                self.too_late += max(0, ceil((self._end_ns - due_ns) / timing.interval_ns))

    def _send(self, instance: Instance, due_ns: int) -> None:
        if instance.station in self._stopped:
            return
        movement = instance.route.at((due_ns - self._begin_ns) / 1e9)
        ratio = self._load.ratio(due_ns) if self._load is not None else 0.0
        off_ms = instance.dcc.state(ratio, due_ns).off_ms if self._dcc else 0
        if not instance.timing.generates(movement, off_ms):
            self.skipped += instance.timing.held_back
            return
        if instance.changer is not None:
            instance.changer.change_if_due(due_ns)
        if (created_ns := now_ns()) - due_ns > _GENERATION_NS:
            # The generation time is that of now: with the place of the due time, receivers would find it implausible.
            movement = instance.route.at((created_ns - self._begin_ns) / 1e9)
        sent = instance.sender.create(movement, ratio)
        if sent is None:
            return
        self._transport.send(sent.frame)
        size, certificate = len(sent.frame) - ETHERNET_HEADER, int(sent.with_certificate)
        row = (instance.station, instance.source, sent.identity, due_ns, now_ns(), sent.sign_ns, size, certificate)
        self._record(SentPacket(*row))
        self.sent_by[instance.station] += 1
