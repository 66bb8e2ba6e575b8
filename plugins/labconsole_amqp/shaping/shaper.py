"""A shaper in user space: relays connections to a broker over a modelled link, without any rights."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Self

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole_amqp.shaping.link_model import Flow, LinkSettings, OneWayLink

CLIENT_BUFFER = 16_384
"""Octets that the kernel accepts from a client on its own side, so that it does not run far ahead of the link."""
_RECEIVE_BUFFER = 16_384
"""Octets that the kernel accepts ahead of the shaper, set on the listening socket, so that connections inherit it."""
_SEND_BUFFER = 65_536
"""Octets that the kernel accepts from the shaper: those behind the link that their reader has not read."""
_READ_OCTETS = 65_536
_TICK_S = 0.05
_LINGER_NS = 200_000_000
"""So long the kernel may still send what was written, before a connection is broken off."""
_IN_PROGRESS = (0, errno.EINPROGRESS, errno.EWOULDBLOCK, getattr(errno, "WSAEWOULDBLOCK", 0))


@dataclass(eq=False)
class _Direction:
    """What one end of a connection sends to the other."""

    source: socket.socket
    sink: socket.socket
    flow: Flow
    ended: bool = False
    """The source has sent all."""
    shut: bool = False
    """The sink has all, and its end."""
    is_full: bool = False
    """The sink accepts nothing now."""

    drops: bool = False
    """The sink is gone: what the source still sends for a while is read and has no reader."""

    def discard(self) -> None:
        """Drop what is on its way, and what comes."""
        self.flow.discard()
        self.drops = self.shut = True


@dataclass(eq=False)
class _Relay:
    """A client's connection and the one to the broker that belongs to it."""

    client: socket.socket
    broker: socket.socket
    directions: tuple[_Direction, _Direction]
    addresses: Iterator[tuple[str, int]]
    """Those of the broker that were not tried yet."""
    is_connected: bool = False
    close_ns: int | None = None
    """An end has broken off: when the other one, which has all that was on its way, is broken off."""
    watched: dict[socket.socket, int] = field(default_factory=dict)


class Shaper:
    """Listens on a port of the loopback interface; what connects to it reaches `target` over the link."""

    def __init__(self, settings: LinkSettings, *, seed: int = 1) -> None:
        random = Random(seed)
        self._settings = settings
        self.up = OneWayLink(settings.rate_up, settings, random)
        self.down = OneWayLink(settings.rate_down, settings, random)
        self._target: tuple[tuple[str, int], ...] = ()
        self._relays: list[_Relay] = []
        # select() waits with a resolution of microseconds, epoll of a millisecond
        self._selector = selectors.SelectSelector()
        self._listener = socket.socket()
        self.faults: list[str] = []
        """Why connections to the broker failed; the reader takes them out."""

    def listen(self) -> int:
        """Begin to accept connections; the port. Raises UserError."""
        try:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
            self._listener.bind(("127.0.0.1", 0))
            self._listener.listen(64)
        except OSError as error:
            raise UserError(f"The shaper cannot listen on 127.0.0.1 ({error.strerror}): check the system.") from error
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        return int(self._listener.getsockname()[1])

    def connect_to(self, host: str, port: int) -> None:
        """Relay connections to this broker from now on. Raises UserError: its name is not found."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise UserError(f"{host} is not found ({error.strerror}): check the host of the broker.") from error
        self._target = tuple((str(address[0]), int(address[1])) for *_, address in found)

    def serve(self, stop: Callable[[], bool], tick: Callable[[], None] = lambda: None) -> None:
        """Relay until `stop`, calling `tick` 20 times a second at least."""
        tick_ns = now_ns()
        while not stop():
            now = now_ns()
            if now >= tick_ns:
                tick()
                tick_ns = now + round(_TICK_S * 1e9)
            timeout_s = max(0, self._next_ns(tick_ns) - now_ns()) / 1e9
            for key, events in self._selector.select(timeout_s):
                if key.data is None:
                    self._accept()
                elif events & selectors.EVENT_WRITE:
                    self._writable(key.data, key.fileobj)  # type: ignore[arg-type]
            now = now_ns()
            for relay in tuple(self._relays):
                self._move(relay, now)

    def _next_ns(self, latest_ns: int) -> int:
        """When there is something to do next that no socket shows."""
        for relay in self._relays:
            if relay.close_ns is not None:
                latest_ns = min(latest_ns, relay.close_ns)
            for one in relay.directions:
                due, opens = one.flow.due_ns(), one.flow.opens_ns()
                if due is not None and not (one.is_full or one.shut):
                    latest_ns = min(latest_ns, due)
                if opens is not None and not relay.watched.get(one.source, 0) & selectors.EVENT_READ:
                    latest_ns = min(latest_ns, opens)
        return latest_ns

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:  # it has left already
            return
        addresses = iter(self._target)
        try:
            _prepare(client)
            broker = _begin_connecting(*next(addresses))
        except OSError as error:
            self.faults.append(error.strerror or str(error))
            client.close()
            return
        open_ns = now_ns() + self._settings.rtt_ns
        up = _Direction(client, broker, Flow(self.up, self.down, self._settings, open_ns))
        down = _Direction(broker, client, Flow(self.down, self.up, self._settings, open_ns))
        relay = _Relay(client, broker, (up, down), addresses)
        self._relays.append(relay)
        self._watch(relay, broker, selectors.EVENT_WRITE)

    def _writable(self, relay: _Relay, sock: socket.socket) -> None:
        """The connection to the broker is there, or has failed; or a socket accepts octets again."""
        if sock is relay.broker and not relay.is_connected:
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                self._try_next(relay, code)
                return
            relay.is_connected = True
        for one in relay.directions:
            if one.sink is sock:
                one.is_full = False

    def _try_next(self, relay: _Relay, code: int) -> None:
        """Connect to the next address of the broker, or report that none is left."""
        address = next(relay.addresses, None)
        if address is None:
            self.faults.append(os.strerror(code))
            self._close_relay(relay)
            return
        self._watch(relay, relay.broker, 0)
        relay.broker.close()
        try:
            broker = _begin_connecting(*address)
        except OSError as error:
            self.faults.append(error.strerror or str(error))
            self._close_relay(relay)
            return
        up, down = relay.directions
        relay.broker = up.sink = down.source = broker
        self._watch(relay, broker, selectors.EVENT_WRITE)

    def _move(self, relay: _Relay, now: int) -> None:
        """Read what the windows accept, and write what has come out."""
        if relay not in self._relays or not relay.is_connected:
            return
        for one, other in (relay.directions, relay.directions[::-1]):
            try:
                self._read(one, now)
            except OSError:  # the source has broken off; what it had sent before is delivered
                one.ended = True
                one.flow.end(now)
                other.discard()
            try:
                self._deliver(one, now)
            except OSError:  # the sink has broken off
                one.discard()
        if all(one.shut for one in relay.directions):
            if relay.close_ns is None:
                is_orderly = all(one.ended for one in relay.directions)
                relay.close_ns = now if is_orderly else now + self._settings.rtt_ns + _LINGER_NS
            if now >= relay.close_ns:
                self._close_relay(relay)
                return
        for one, other in (relay.directions, relay.directions[::-1]):
            reading = selectors.EVENT_READ if not one.ended and (one.drops or one.flow.room(now)) else 0
            self._watch(relay, one.source, reading | (selectors.EVENT_WRITE if other.is_full else 0))

    def _read(self, one: _Direction, now: int) -> None:
        room = _READ_OCTETS if one.drops else one.flow.room(now)
        if one.ended or not room:
            return
        try:
            octets = one.source.recv(min(room, _READ_OCTETS))
        except BlockingIOError:
            return
        read_ns = now_ns()  # this thread may have paused since `now`, and they may have come meanwhile
        if octets and not one.drops:
            one.flow.offer(octets, read_ns)
        elif octets:
            return
        else:
            one.ended = True
            one.flow.end(read_ns)

    def _deliver(self, one: _Direction, now: int) -> None:
        while not one.shut and (octets := one.flow.arrived(now)):
            try:
                count = one.sink.send(octets)
            except BlockingIOError:
                count = 0
            one.flow.delivered(count, now)
            if count < len(octets):
                one.is_full = True
                return
        if one.flow.is_over(now) and not one.shut:
            one.shut = True
            one.sink.shutdown(socket.SHUT_WR)

    def _watch(self, relay: _Relay, sock: socket.socket, events: int) -> None:
        before = relay.watched.get(sock, 0)
        if events == before:
            return
        if not events:
            self._selector.unregister(sock)
            del relay.watched[sock]
            return
        (self._selector.modify if before else self._selector.register)(sock, events, relay)
        relay.watched[sock] = events

    def _close_relay(self, relay: _Relay) -> None:
        for sock in (relay.client, relay.broker):
            self._watch(relay, sock, 0)
            sock.close()
        self._relays.remove(relay)

    def close(self) -> None:
        """End all connections, and listen no more."""
        for relay in tuple(self._relays):
            self._close_relay(relay)
        self._selector.close()
        self._listener.close()

    def __enter__(self) -> Self:
        """Itself, to be closed at the end."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close."""
        self.close()


def _prepare(sock: socket.socket) -> None:
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)


def _begin_connecting(host: str, port: int) -> socket.socket:
    """A socket that connects to an address. Raises OSError."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        _prepare(sock)
        code = sock.connect_ex((host, port))
        if code not in _IN_PROGRESS:
            raise OSError(code, os.strerror(code))
    except OSError:
        sock.close()
        raise
    return sock


@contextmanager
def serving(settings: LinkSettings, port: int, host: str = "127.0.0.1") -> Iterator[tuple[Shaper, int]]:
    """A shaper in front of a host and port that serves in a thread until the block ends, and its own port."""
    with Shaper(settings) as shaper:
        own_port, over = shaper.listen(), threading.Event()
        shaper.connect_to(host, port)
        thread = threading.Thread(target=shaper.serve, args=(over.is_set,), name="shaper")
        thread.start()
        try:
            yield shaper, own_port
        finally:
            over.set()
            thread.join()
