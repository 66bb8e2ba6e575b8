"""The shaper relays connections unchanged at no more than its rate, and reports a broker that does not answer."""

from __future__ import annotations

import itertools
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole_amqp.shaping import calibration
from labconsole_amqp.shaping.calibration import calibrate, octet_rate
from labconsole_amqp.shaping.link_model import SEGMENT_OCTETS, LinkSettings
from labconsole_amqp.shaping.shaper import Shaper, _Direction, serving

FAST = LinkSettings(1e9, 1e9, window=1 << 18)


@contextmanager
def echo() -> Iterator[int]:
    """A server that reads all of a connection, then sends it back; its port."""

    def serve() -> None:
        with suppress_closed():
            while True:
                sock, _ = listener.accept()
                with sock:
                    whole = b""
                    while octets := sock.recv(65_536):
                        whole += octets
                    sock.sendall(whole)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, name="echo")
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def suppress_closed() -> Iterator[None]:
    try:
        yield
    except OSError:
        return


def echoed(port: int, octets: bytes) -> bytes:
    """What comes back of a connection on which `octets` are sent."""
    with socket.create_connection(("127.0.0.1", port), 30) as sock:
        sender = threading.Thread(target=lambda: (sock.sendall(octets), sock.shutdown(socket.SHUT_WR)))
        sender.start()
        back = b""
        while part := sock.recv(65_536):
            back += part
        sender.join()
    return back


@pytest.mark.parametrize(
    "settings",
    [FAST, LinkSettings(20e6, 40e6, 5_000_000, 2_000_000, 0.01, 65_536), LinkSettings(50e6, 50e6, window=2_000)],
    ids=["fast", "all effects", "small window"],
)
def test_octets_pass_unchanged_both_ways_and_both_ends_are_closed(settings: LinkSettings) -> None:
    sent = Random(1).randbytes(300_000)
    with echo() as target, serving(settings, target) as (shaper, port):
        for _ in range(3):
            assert echoed(port, sent) == sent
        deadline = time.monotonic() + 10
        while shaper._relays and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not shaper._relays and not shaper.faults


def test_nothing_passes_faster_than_the_rate() -> None:
    settings = LinkSettings(4e6, 8e6)
    sent = bytes(200_000)
    with echo() as target, serving(settings, target) as (_, port):
        begin = time.monotonic()
        assert echoed(port, sent) == sent
        taken = time.monotonic() - begin
    assert taken > 0.98 * len(sent) * 8 * (1 / 4e6 + 1 / 8e6)


def test_octets_that_come_while_the_shaper_pauses_take_the_whole_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a busy computer: the pause is between the time of the shaper's turn and its reading."""
    settings, read, sent_ns = LinkSettings(1e9, 1e9, delay_ns=40_000_000), Shaper._read, list[int]()
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        serving(settings, server.getsockname()[1]) as (_, port),
        socket.create_connection(("127.0.0.1", port), 10) as client,
        server.accept()[0] as accepted,
    ):
        accepted.settimeout(10)
        client.sendall(b"first")
        assert accepted.recv(5) == b"first"

        def read_after_pause(self: Shaper, one: _Direction, now: int) -> None:
            if one.flow._link is self.up and not sent_ns:
                time.sleep(0.03)
                sent_ns.append(now_ns())
                client.sendall(b"second")
            read(self, one, now)

        monkeypatch.setattr(Shaper, "_read", read_after_pause)
        assert accepted.recv(6) == b"second"
        assert now_ns() - sent_ns[0] >= settings.delay_ns


def test_a_client_cannot_run_far_ahead() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        serving(LinkSettings(1e9, 1e9), silent.getsockname()[1]) as (_, port),
        socket.create_connection(("127.0.0.1", port)) as client,
    ):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        accepted, _ = silent.accept()
        with accepted:
            client.settimeout(0.5)
            sent = 0
            with pytest.raises(TimeoutError):
                while sent < 64 << 20:
                    sent += client.send(bytes(4096))
    # The window, and what the kernel holds for a reader that does not read: without limits, 4 MB.
    assert sent < 1 << 20


def reset(sock: socket.socket) -> None:
    """Break a connection off, as a killed process does."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def whole(sock: socket.socket) -> bytes:
    """All that comes until the connection ends, in order or broken off."""
    octets = b""
    with suppress_closed():
        while part := sock.recv(65_536):
            octets += part
    return octets


@pytest.mark.parametrize("breaks", ["client", "broker"])
def test_what_was_sent_before_a_connection_broke_off_arrives(breaks: str) -> None:
    last_words = Random(3).randbytes(30_000)
    settings = LinkSettings(20e6, 20e6, delay_ns=30_000_000)
    with socket.create_server(("127.0.0.1", 0)) as server, serving(settings, server.getsockname()[1]) as (shaper, port):
        client = socket.create_connection(("127.0.0.1", port), 10)
        broker, _ = server.accept()
        broken, other = (client, broker) if breaks == "client" else (broker, client)
        other.settimeout(10)
        other.sendall(b"unread")
        broken.settimeout(10)
        assert broken.recv(1) == b"u"
        broken.sendall(last_words)
        link = shaper.up if breaks == "client" else shaper.down
        deadline = time.monotonic() + 10
        while link.octets < len(last_words) and time.monotonic() < deadline:  # until the shaper has read it
            time.sleep(0.005)
        reset(broken)
        with other:
            assert whole(other) == last_words
        deadline = time.monotonic() + 10
        while shaper._relays and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not shaper._relays


def test_the_next_address_of_a_broker_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        unused = gone.getsockname()[1]
    with echo() as target:
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", one)) for one in (unused, target)]
        right = socket.getaddrinfo
        monkeypatch.setattr(
            socket,
            "getaddrinfo",
            lambda host, *more, **named: found if host == "broker.test" else right(host, *more, **named),
        )
        with serving(FAST, 5672, "broker.test") as (shaper, port):
            assert echoed(port, b"hello") == b"hello"
            assert not shaper.faults


def test_a_calibration_can_be_stopped() -> None:
    begin = time.monotonic()
    with pytest.raises(UserError, match="stopped"):
        calibrate(LinkSettings(2e6, 2e6), 60.0, lambda: time.monotonic() - begin > 0.5)
    assert time.monotonic() - begin < 10


def test_slow_and_far_links_are_calibrated_in_time() -> None:
    measured = calibrate(LinkSettings(0.5e6, 0.5e6, delay_ns=300_000_000), 0.5)
    assert 0.2e6 < measured.rate_up < 0.55e6 and measured.rtt_ns >= 600_000_000


def test_connections_to_a_broker_that_is_not_there_are_closed_and_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        target = gone.getsockname()[1]
    with serving(FAST, target) as (shaper, port):
        with socket.create_connection(("127.0.0.1", port), 10) as client, suppress_closed():
            assert client.recv(1) == b""
        deadline = time.monotonic() + 10
        while not shaper.faults and time.monotonic() < deadline:
            time.sleep(0.01)
        assert shaper.faults == ["Connection refused"]


def test_a_host_without_address_is_named() -> None:
    with Shaper(FAST) as shaper, pytest.raises(UserError, match=r"broker\.invalid is not found"):
        shaper.connect_to("broker.invalid", 5672)


def test_a_calibration_shows_both_rates_and_the_round_trip() -> None:
    measured = calibrate(LinkSettings(1e6, 4e6, delay_ns=20_000_000), 1.0)
    # Upper bounds hold on a busy computer, too; the figures themselves are those of amqp_shaped_link.py.
    assert 0.1e6 < measured.rate_up < 1.05e6
    assert measured.rate_up < measured.rate_down < 4.2e6
    assert measured.rtt_ns >= 40_000_000


def test_the_rate_of_a_stream_is_that_of_its_packets_with_their_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packets of 1,500 octets every 6 ms."""
    times = itertools.count(0, 6_000_000)
    monkeypatch.setattr(calibration, "now_ns", lambda: next(times))
    assert calibration._read_rate(lambda: bytes(SEGMENT_OCTETS), 0.2) == pytest.approx(2e6)


@pytest.mark.parametrize("paused", [range(0, 60), range(100, 160), range(140, 200)])
def test_a_reader_that_pauses_does_not_change_the_rate(paused: range) -> None:
    """200 segments at 2 Mbit/s; those of a pause are all read at its end."""
    segment_ns = 5_840_000
    times = [place * segment_ns for place in range(200)]
    late = [times[paused[-1]] if place in paused else at for place, at in enumerate(times)]
    assert octet_rate(times, [1460] * 200) == pytest.approx(250_000)
    assert octet_rate(late, [1460] * 200) == pytest.approx(250_000, rel=0.02)


def test_a_stream_without_a_second_moment_has_no_rate() -> None:
    assert octet_rate([], []) == octet_rate([5], [1460]) == octet_rate([5, 5], [1460, 1460]) == 0
