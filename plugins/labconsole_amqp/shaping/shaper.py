"""A shaper in user space: relays connections to a broker over a modelled link, without rights, on all systems."""

from __future__ import annotations

import errno
import selectors
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Self

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole_amqp.shaping.link_model import Flow, LinkSettings, OneWayLink

_RECEIVE_BUFFER = 16_384
"""Octets that the kernel accepts ahead of the shaper, set on the listening socket, so that connections inherit it."""
_SEND_BUFFER = 65_536
"""Octets that the kernel accepts from the shaper: those behind the link that their reader has not read."""
_READ_OCTETS = 65_536
_TICK_S = 0.05
_IN_PROGRESS = (0, errno.EINPROGRESS, errno.EWOULDBLOCK, getattr(errno, "WSAEWOULDBLOCK", 0))


@dataclass
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


@dataclass
class _Relay:
    """A client's connection and the one to the broker that belongs to it."""

    client: socket.socket
    broker: socket.socket
    directions: tuple[_Direction, _Direction]
    is_connected: bool = False
    watched: dict[socket.socket, int] = field(default_factory=dict)


class Shaper:
    """Listens on a port of the loopback interface; what connects to it reaches `target` over the link."""

    def __init__(self, settings: LinkSettings, *, seed: int = 1) -> None:
        random = Random(seed)
        self._settings = settings
        self.up = OneWayLink(settings.rate_up, settings, random)
        self.down = OneWayLink(settings.rate_down, settings, random)
        self._target: tuple[str, int] | None = None
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
            *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        except OSError as error:
            raise UserError(f"{host} is not found ({error.strerror}): check the host of the broker.") from error
        self._target = (str(address[0]), int(address[1]))

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
            for one in relay.directions:
                due, opens = one.flow.due_ns(), one.flow.opens_ns()
                if due is not None and not one.is_full:
                    latest_ns = min(latest_ns, due)
                if opens is not None and not relay.watched.get(one.source, 0) & selectors.EVENT_READ:
                    latest_ns = min(latest_ns, opens)
        return latest_ns

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:  # it has left already
            return
        assert self._target is not None, "the broker is set before clients are started"
        host, port = self._target
        broker = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        for one in (client, broker):
            one.setblocking(False)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        open_ns = now_ns() + self._settings.rtt_ns
        up = _Direction(client, broker, Flow(self.up, self.down, self._settings, open_ns))
        down = _Direction(broker, client, Flow(self.down, self.up, self._settings, open_ns))
        relay = _Relay(client, broker, (up, down))
        self._relays.append(relay)
        code = broker.connect_ex((host, port))
        if code not in _IN_PROGRESS:
            self._fail(relay, code)
            return
        self._watch(relay, broker, selectors.EVENT_WRITE)

    def _writable(self, relay: _Relay, sock: socket.socket) -> None:
        """The connection to the broker is there, or has failed; or a socket accepts octets again."""
        if sock is relay.broker and not relay.is_connected:
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                self._fail(relay, code)
                return
            relay.is_connected = True
        for one in relay.directions:
            if one.sink is sock:
                one.is_full = False

    def _fail(self, relay: _Relay, code: int) -> None:
        self.faults.append(errno.errorcode.get(code, str(code)))
        self._end(relay)

    def _move(self, relay: _Relay, now: int) -> None:
        """Read what the windows accept, and write what has come out."""
        if relay not in self._relays or not relay.is_connected:
            return
        try:
            for one in relay.directions:
                self._deliver(one, now)
                self._read(one, now)
        except OSError:  # an end has left: the other one sees the same
            self._end(relay)
            return
        if all(one.shut for one in relay.directions):
            self._end(relay)
            return
        for one, other in (relay.directions, relay.directions[::-1]):
            reading = selectors.EVENT_READ if not one.ended and one.flow.room(now) else 0
            self._watch(relay, one.source, reading | (selectors.EVENT_WRITE if other.is_full else 0))

    def _read(self, one: _Direction, now: int) -> None:
        room = one.flow.room(now)
        if one.ended or not room:
            return
        try:
            octets = one.source.recv(min(room, _READ_OCTETS))
        except BlockingIOError:
            return
        if octets:
            one.flow.offer(octets, now)
        else:
            one.ended = True

    def _deliver(self, one: _Direction, now: int) -> None:
        while octets := one.flow.arrived(now):
            try:
                count = one.sink.send(octets)
            except BlockingIOError:
                count = 0
            one.flow.delivered(count, now)
            if count < len(octets):
                one.is_full = True
                return
        if one.ended and not one.shut and one.flow.due_ns() is None:
            one.sink.shutdown(socket.SHUT_WR)
            one.shut = True

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

    def _end(self, relay: _Relay) -> None:
        for sock in (relay.client, relay.broker):
            self._watch(relay, sock, 0)
            sock.close()
        self._relays.remove(relay)

    def close(self) -> None:
        """End all connections, and listen no more."""
        for relay in tuple(self._relays):
            self._end(relay)
        self._selector.close()
        self._listener.close()

    def __enter__(self) -> Self:
        """Itself, to be closed at the end."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close."""
        self.close()
