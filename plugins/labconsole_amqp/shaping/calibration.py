"""Calibration of a shaper: its rates and round-trip time, measured over a connection through it on this computer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole_amqp.shaping.link_model import HEADER_OCTETS, SEGMENT_OCTETS, LinkSettings
from labconsole_amqp.shaping.shaper import Shaper

_CHUNK = bytes(SEGMENT_OCTETS)
_LEAST_EXCHANGES = 5
_TIMEOUT_S = 30.0
_ECHO, _SEND, _SINK = b"e", b"s", b"d"
"""What the other end of a probe does: return each octet, send for as long as it can, or read."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a shaper does on this computer: rates in bit/s of IP packets, the median round-trip time in ns."""

    rate_up: float
    rate_down: float
    rtt_ns: int


def calibrate(settings: LinkSettings, seconds: float) -> Calibration:
    """Measure a shaper with these settings for so many seconds. Raises UserError: it does not work here.

    A fifth goes to round trips of one octet, the rest to both directions at full speed, one after the other.
    """
    try:
        with _other_end() as port, Shaper(settings) as shaper, _served(shaper, port) as own_port:
            rtt_ns = _round_trip_ns(own_port, seconds / 5)
            rate_down = _rate(own_port, _SEND, seconds * 2 / 5)
            rate_up = _rate(own_port, _SINK, seconds * 2 / 5)
    except OSError as error:
        raise UserError(f"The shaped link cannot be measured ({error.strerror or error}): check its values.") from error
    return Calibration(rate_up, rate_down, rtt_ns)


def _round_trip_ns(port: int, seconds: float) -> int:
    with socket.create_connection(("127.0.0.1", port), _TIMEOUT_S) as probe:
        probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        probe.sendall(_ECHO)
        times: list[int] = []
        end_ns = now_ns() + round(seconds * 1e9)
        while now_ns() < end_ns or len(times) < _LEAST_EXCHANGES:
            begin_ns = now_ns()
            probe.sendall(b"x")
            if not probe.recv(1):
                raise OSError("the connection ended")
            times.append(now_ns() - begin_ns)
    return round(median(times[1:]))


def _rate(port: int, order: bytes, seconds: float) -> float:
    """Bits of IP packets a second: between the first and the last of what came out in the time."""
    with socket.create_connection(("127.0.0.1", port), _TIMEOUT_S) as probe:
        probe.sendall(order)
        if order == _SEND:
            return _read_rate(probe, seconds)
        probe.settimeout(seconds)
        end_ns = now_ns() + round(seconds * 1e9)
        try:
            while now_ns() < end_ns:
                probe.send(_CHUNK)
        except TimeoutError:
            pass
        probe.shutdown(socket.SHUT_WR)
        probe.settimeout(_TIMEOUT_S)
        reply = b""
        while octets := probe.recv(64):
            reply += octets
        return float(reply)


def _read_rate(sock: socket.socket, seconds: float = float("inf")) -> float:
    """The rate at which octets come, until the end or for a time; what has waited at the beginning does not count."""
    octets, first_ns, last_ns, first = 0, 0, 0, 0
    while chunk := sock.recv(65_536):
        last_ns = now_ns()
        octets += len(chunk)
        if not first_ns:
            first_ns, first = last_ns, octets
        if last_ns - first_ns > seconds * 1e9:
            break
    packets = (octets - first) * (1 + HEADER_OCTETS / SEGMENT_OCTETS)
    return packets * 8e9 / (last_ns - first_ns) if last_ns > first_ns else 0.0


@contextmanager
def _served(shaper: Shaper, target_port: int) -> Iterator[int]:
    """Serve a shaper in a thread; its port."""
    port = shaper.listen()
    shaper.connect_to("127.0.0.1", target_port)
    over = threading.Event()
    thread = threading.Thread(target=shaper.serve, args=(over.is_set,), name="calibrated shaper")
    thread.start()
    try:
        yield port
    finally:
        over.set()
        thread.join()


@contextmanager
def _other_end() -> Iterator[int]:
    """A server that does what the first octet of a connection orders; its port."""
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            try:
                sock, _ = listener.accept()
            except TimeoutError:
                continue
            with sock:
                sock.settimeout(_TIMEOUT_S)
                try:
                    _obey(sock, over)
                except OSError:  # the probe has left: its part is measured
                    continue

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        thread = threading.Thread(target=serve, name="other end of the link")
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()
            thread.join()


def _obey(sock: socket.socket, over: threading.Event) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    order = sock.recv(1)
    if order == _ECHO:
        while octets := sock.recv(64):
            sock.sendall(octets)
    elif order == _SINK:
        sock.sendall(repr(_read_rate(sock)).encode())
    else:
        sock.settimeout(0.2)
        while not over.is_set():
            try:
                sock.send(_CHUNK * 8)
            except TimeoutError:
                time.sleep(0)
