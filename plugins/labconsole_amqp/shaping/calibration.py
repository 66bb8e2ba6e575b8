"""Calibration of a shaper: its rates and round-trip time, measured over a connection through it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from statistics import median

import numpy as np

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole_amqp.shaping.link_model import HEADER_OCTETS, SEGMENT_OCTETS, LinkSettings
from labconsole_amqp.shaping.shaper import CLIENT_BUFFER, serving

_CHUNK = bytes(16 * SEGMENT_OCTETS)
_SETTLING_NS = 100_000_000
"""At the beginning of a rate: what waited for its reader comes at once, and does not count."""
_MOMENTS = 256
"""Of a stream, between which its rate is measured."""
_LEAST_EXCHANGES = 5
_TIMEOUT_S, _TURN_S = 10.0, 0.2
_ECHO, _SEND, _SINK = b"e", b"s", b"d"
"""What the other end of a probe does: return each octet, send for as long as it can, or read."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a shaper does on this computer: rates in bit/s of IP packets, the median round-trip time in ns."""

    rate_up: float
    rate_down: float
    rtt_ns: int


def calibrate(settings: LinkSettings, seconds: float, stop: Callable[[], bool] = lambda: False) -> Calibration:
    """Measure a shaper with these settings for so many seconds, and what is on its way then.

    A fifth goes to round trips of one octet, the rest to both directions at full speed, one after the other: without
    loss, and with a window that does not bound the rate. Raises UserError: it does not work here, or `stop`.
    """
    link = settings.for_calibration
    timeout_s = _TIMEOUT_S + link.settling_s
    try:
        with _probe_server(timeout_s) as port, serving(link, port) as (_, own_port):
            probe = _Probe(own_port, timeout_s, stop)
            rtt_ns = probe.round_trip_ns(seconds / 5)
            rate_down = probe.rate_from(seconds * 2 / 5)
            rate_up = probe.rate_to(seconds * 2 / 5)
    except OSError as error:
        raise UserError(f"The shaped link cannot be measured ({error.strerror or error}): check its values.") from error
    return Calibration(rate_up, rate_down, rtt_ns)


class _Probe:
    """The client's end of measurements, which `stop` ends early."""

    def __init__(self, port: int, timeout_s: float, stop: Callable[[], bool]) -> None:
        self._port, self._timeout_s, self._stop = port, timeout_s, stop

    def round_trip_ns(self, seconds: float) -> int:
        """The median time of an exchange of one octet."""
        with self._connected(_ECHO) as sock:
            times: list[int] = []
            end_ns = now_ns() + round(seconds * 1e9)
            while now_ns() < end_ns or len(times) < _LEAST_EXCHANGES:
                begin_ns = now_ns()
                sock.sendall(b"x")
                if not self._read(sock):
                    raise OSError("the connection ended")
                times.append(now_ns() - begin_ns)
        return round(median(times[1:]))

    def rate_from(self, seconds: float) -> float:
        """The rate from the server, bit/s of IP packets."""
        with self._connected(_SEND) as sock:
            return _read_rate(lambda: self._read(sock), seconds)

    def rate_to(self, seconds: float) -> float:
        """The rate to the server, which measures it, bit/s of IP packets."""
        with self._connected(_SINK) as sock:
            end_ns = now_ns() + round(seconds * 1e9)
            while now_ns() < end_ns and not self._stop():
                with suppress(TimeoutError):
                    sock.send(_CHUNK)
            sock.shutdown(socket.SHUT_WR)
            reply = b""
            while octets := self._read(sock):
                reply += octets
        return float(reply)

    @contextmanager
    def _connected(self, order: bytes) -> Iterator[socket.socket]:
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CLIENT_BUFFER)
            sock.settimeout(self._timeout_s)
            sock.connect(("127.0.0.1", self._port))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.sendall(order)
            sock.settimeout(_TURN_S)
            yield sock

    def _read(self, sock: socket.socket) -> bytes:
        """What comes next, empty at the end. Raises OSError: nothing in time, or the run is to stop."""
        deadline = time.monotonic() + self._timeout_s
        while time.monotonic() < deadline:
            if self._stop():
                raise OSError("stopped")
            with suppress(TimeoutError):
                return sock.recv(65_536)
        raise OSError("timed out")


def _read_rate(read: Callable[[], bytes], seconds: float = float("inf")) -> float:
    """The rate at which octets come, bit/s of IP packets, until the end or for a time after settling."""
    times: list[int] = []
    octets: list[int] = []
    begun_ns = 0
    while chunk := read():
        at_ns = now_ns()
        begun_ns = begun_ns or at_ns
        if at_ns - begun_ns >= _SETTLING_NS:
            times.append(at_ns)
            octets.append(len(chunk))
        if times and times[-1] - times[0] > seconds * 1e9:
            break
    return octet_rate(times, octets) * (1 + HEADER_OCTETS / SEGMENT_OCTETS) * 8


def octet_rate(times_ns: Sequence[int], octets: Sequence[int]) -> float:
    """Octets per second of a steady stream, from when so many were read: the median slope between any two moments.

    A reader that pauses finds what came meanwhile all at once; between first and last it would count too much or too
    little.
    """
    places = np.unique(np.linspace(0, len(times_ns) - 1, _MOMENTS).astype(int)) if times_ns else np.zeros(0, int)
    moments, sums = np.asarray(times_ns)[places], np.cumsum(octets)[places]
    earlier, later = np.triu_indices(len(places), 1)
    spans = moments[later] - moments[earlier]
    slopes = (sums[later] - sums[earlier])[spans > 0] / spans[spans > 0]
    return float(np.median(slopes)) * 1e9 if len(slopes) else 0.0


@contextmanager
def _probe_server(timeout_s: float) -> Iterator[int]:
    """A server that does what the first octet of a connection orders; its port."""
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            try:
                sock, _ = listener.accept()
            except TimeoutError:
                continue
            with sock:
                sock.settimeout(timeout_s)
                try:
                    _serve_probe(sock, over)
                except OSError:  # the probe has left: its part is measured
                    continue

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        thread = threading.Thread(target=serve, name="probe server")
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()
            thread.join()


def _serve_probe(sock: socket.socket, over: threading.Event) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    order = sock.recv(1)
    if order == _ECHO:
        while octets := sock.recv(64):
            sock.sendall(octets)
    elif order == _SINK:
        sock.sendall(repr(_read_rate(lambda: sock.recv(65_536))).encode())
    else:
        sock.settimeout(_TURN_S)
        while not over.is_set():
            with suppress(TimeoutError):
                sock.send(_CHUNK)
