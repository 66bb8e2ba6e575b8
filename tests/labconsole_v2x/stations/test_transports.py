"""Frames over UDP multicast, UDP unicast and raw Ethernet, and one clear sentence for each way in which that fails."""

from __future__ import annotations

import errno
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from random import SystemRandom
from typing import Any

import pytest

from labconsole.errors import UserError
from labconsole_v2x.stations import transports
from labconsole_v2x.stations.capture import BROADCAST, ethernet_frame
from labconsole_v2x.stations.transports import (
    LARGEST_FRAME,
    Transport,
    TransportKind,
    TransportSettings,
    open_transport,
)
from tests.helpers.capabilities import without_capabilities
from tests.helpers.udp_ports import free_udp_port

GROUP = "239.118.122.97"
LOOPBACK = "127.0.0.1"
OF_NO_INTERFACE = "203.0.113.1"
"""An address for documentation (RFC 5737)."""
RAW_ETHERNET = "Raw Ethernet frames need the right CAP_NET_RAW: start the console as root, or choose UDP multicast."
linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
Opener = Callable[..., Transport]


@pytest.fixture
def opened() -> Iterator[Opener]:
    """Opens transports, and closes them after the test."""
    with ExitStack() as opened:

        def open_one(settings: TransportSettings, *, receiver: bool = False) -> Transport:
            return opened.enter_context(closing(open_transport(settings, receiver=receiver)))

        yield open_one


def multicast() -> TransportSettings:
    return TransportSettings(TransportKind.MULTICAST, LOOPBACK, GROUP, free_udp_port())


def unicast() -> TransportSettings:
    return TransportSettings(TransportKind.UNICAST, LOOPBACK, LOOPBACK, free_udp_port())


def on_interface(name: str) -> TransportSettings:
    return TransportSettings(TransportKind.ETHERNET, name, GROUP, 0)


def new_mac() -> bytes:
    """A random MAC address: other tests may use the same interface now."""
    return b"\2" + SystemRandom().randbytes(5)


def frames(count: int, source: bytes, octets: int = 100) -> list[bytes]:
    return [ethernet_frame(number.to_bytes(2, "big") + bytes(octets - 16), source) for number in range(count)]


def received(transport: Transport, count: int, *sources: bytes) -> list[bytes]:
    """The next frames of these sources, or of any; fewer where no more come."""
    found: list[bytes] = []
    deadline = time.monotonic() + 20
    while len(found) < count and time.monotonic() < deadline:
        frame = transport.receive()
        if frame is None and found and not sources:
            break
        if frame is not None and (not sources or frame[6:12] in sources):
            found.append(frame)
    return found


def is_silent(transport: Transport) -> bool:
    """Whether nothing comes within 0.2 s."""
    return transport.receive() is None and transport.receive() is None


def refused(settings: TransportSettings, *, receiver: bool = False) -> str:
    """The sentence with which a transport is not opened."""
    with pytest.raises(UserError) as error:
        open_transport(settings, receiver=receiver).close()
    return str(error.value)


def test_every_station_of_a_multicast_group_hears_every_frame(opened: Opener) -> None:
    settings = multicast()
    stations = [opened(settings) for _ in range(3)]
    sent = frames(20, new_mac())
    for number, frame in enumerate(sent):
        stations[number % 3].send(frame)
    assert [received(station, 20) for station in stations] == [sent] * 3
    assert all(is_silent(station) for station in stations)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not bind to a group")
def test_another_group_on_the_same_port_is_not_heard(opened: Opener) -> None:
    settings = multicast()
    other = opened(replace(settings, group="239.118.122.98"))
    station = opened(settings)
    sent = frames(3, new_mac())
    for frame in sent:
        station.send(frame)
    assert received(station, 3) == sent
    assert is_silent(other)


def test_unicast_receiver_hears_all_and_answers_all(opened: Opener) -> None:
    settings = unicast()
    receiver = opened(settings, receiver=True)
    senders = [opened(settings) for _ in range(3)]
    sent = [frames(5, new_mac()) for _ in senders]
    receiver.send(sent[0][0])  # to no one yet
    for sender, some in zip(senders, sent, strict=True):
        for frame in some:
            sender.send(frame)
    assert sorted(received(receiver, 15)) == sorted(frame for some in sent for frame in some)
    answer = frames(1, new_mac())
    receiver.send(answer[0])
    assert [received(sender, 1) for sender in senders] == [answer] * 3
    assert all(is_silent(sender) for sender in senders)


def test_unicast_receiver_answers_a_bounded_number_of_addresses(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transports, "MOST_PEERS", 1)
    settings = unicast()
    receiver, first, second = opened(settings, receiver=True), opened(settings), opened(settings)
    sent = frames(3, new_mac())
    for sender, frame in zip((first, second), sent, strict=False):
        sender.send(frame)
        assert received(receiver, 1) == [frame]
    receiver.send(sent[2])
    assert received(first, 1) == sent[2:]
    assert is_silent(second)


def test_unicast_frame_without_receiver_is_lost_as_on_the_air(opened: Opener) -> None:
    sender = opened(unicast())
    for frame in frames(3, new_mac()):
        sender.send(frame)
    assert is_silent(sender)


@pytest.mark.parametrize("fault", [OSError(errno.ENOBUFS, "no room"), BlockingIOError()])
def test_frame_for_which_the_network_has_no_room_is_lost_as_on_the_air(opened: Opener, fault: OSError) -> None:
    class Full(socket.socket):
        def sendto(self, *_: Any) -> int:
            raise fault

    sender = opened(multicast())
    sender._sending.close()  # type: ignore[attr-defined]
    sender._sending = Full(socket.AF_INET, socket.SOCK_DGRAM)  # type: ignore[attr-defined]
    sender.send(frames(1, new_mac())[0])


@linux
def test_datagram_from_port_0_is_received_and_not_answered(opened: Opener) -> None:
    settings = unicast()
    receiver = opened(settings, receiver=True)
    sent = frames(2, new_mac())
    try:
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    except PermissionError:
        pytest.skip("needs CAP_NET_RAW")
    with raw:
        raw.sendto(struct.pack(">4H", 0, settings.port, 8 + len(sent[0]), 0) + sent[0], (LOOPBACK, 0))
    assert received(receiver, 1) == sent[:1]
    receiver.send(sent[1])


@linux
def test_raw_ethernet_on_the_loopback_interface(opened: Opener) -> None:
    try:
        stations = [opened(on_interface("lo")) for _ in range(2)]
    except UserError as error:
        assert str(error) == RAW_ETHERNET
        pytest.skip("needs CAP_NET_RAW")
    source = new_mac()
    sent = frames(10, source)
    for frame in sent:
        stations[0].send(frame)
    assert [received(station, 10, source) for station in stations] == [sent] * 2


@linux
def test_raw_ethernet_without_the_right_is_one_sentence() -> None:
    assert without_capabilities(lambda: refused(on_interface("lo"))) == RAW_ETHERNET


@linux
def test_unknown_interface_is_named_with_those_that_exist() -> None:
    try:
        open_transport(on_interface("lo"), receiver=False).close()
    except UserError as error:
        assert str(error) == RAW_ETHERNET
        pytest.skip("needs CAP_NET_RAW")
    sentence = refused(on_interface("nowhere0"))
    assert sentence.startswith("The interface nowhere0 cannot be used (No such device): choose one of ")
    assert "lo" in sentence.rstrip(".").partition("choose one of ")[2].split(", ")


def test_port_in_use_is_one_sentence(opened: Opener) -> None:
    """A program of another kind has the multicast port, or another receiver the unicast port."""
    sentence = "Port {} is in use: choose another port, or end the program that uses it."
    settings = unicast()
    opened(settings, receiver=True)
    assert refused(settings, receiver=True) == sentence.format(settings.port)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as program:
        program.bind(("", 0))
        port = program.getsockname()[1]
        assert refused(replace(multicast(), port=port)) == sentence.format(port)


def test_interface_without_multicast_route_is_one_sentence() -> None:
    assert refused(replace(multicast(), interface=OF_NO_INTERFACE)) in (
        f"No interface with multicast has the address {OF_NO_INTERFACE}: give that of one, or choose UDP unicast, "
        "which needs no multicast.",
        f"No interface of this computer has the address {OF_NO_INTERFACE}: give one that it has.",  # Windows, macOS
    )


@pytest.mark.parametrize("receiver", [False, True])
def test_unicast_address_that_this_computer_has_not_is_named(receiver: bool) -> None:
    address = OF_NO_INTERFACE
    settings = replace(unicast(), group=address) if receiver else replace(unicast(), interface=address)
    sentence = f"No interface of this computer has the address {OF_NO_INTERFACE}: give one that it has."
    assert refused(settings, receiver=receiver) == sentence


@pytest.mark.parametrize("text", ["eth0", "", "::1", "127.0.0.256"])
def test_what_is_not_an_ipv4_address_is_named(text: str) -> None:
    sentence = f"{text} is not an IPv4 address: give one such as 127.0.0.1."
    assert refused(replace(multicast(), interface=text)) == sentence
    assert refused(replace(multicast(), group=text)) == sentence
    assert refused(replace(unicast(), interface=text)) == sentence
    assert refused(replace(unicast(), group=text), receiver=True) == sentence


def test_group_that_is_not_a_multicast_address_is_named() -> None:
    sentence = refused(replace(multicast(), group="10.0.0.1"))
    assert sentence == "10.0.0.1 is not a multicast address: choose one such as 239.118.122.97, or unicast."


@linux
def test_port_for_root_only_is_one_sentence() -> None:
    first = int(open("/proc/sys/net/ipv4/ip_unprivileged_port_start").read())  # noqa: SIM115, PTH123
    if first < 2:
        pytest.skip("every port is for all here")
    settings = replace(unicast(), port=first - 1)
    sentence = f"Port {first - 1} may not be used without more rights: choose one from 1024 on."
    assert without_capabilities(lambda: refused(settings, receiver=True)) == sentence


NETWORK_GOES = """
import subprocess, sys
from labconsole.errors import UserError
from labconsole_v2x.stations.transports import TransportKind, TransportSettings, open_transport

subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
settings = TransportSettings(TransportKind.MULTICAST, "127.0.0.1", "239.118.122.97", 40000)
transport = open_transport(settings, receiver=False)
transport.send(b"x" * 100)
assert transport.receive() == b"x" * 100
subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
try:
    transport.send(b"x" * 100)
except UserError as error:
    print(error)
transport.close()
"""


@linux
def test_network_that_goes_is_one_sentence() -> None:
    """In a network of its own (a namespace), whose interface is taken away while frames are sent."""
    isolated = ["unshare", "--net", "--map-root-user"]
    if subprocess.run([*isolated, "ip", "link"], capture_output=True).returncode:
        pytest.skip("needs the right to create a network namespace, and the command ip")
    done = subprocess.run(
        [*isolated, sys.executable, "-c", NETWORK_GOES], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == (
        "A frame cannot be sent over UDP multicast 239.118.122.97:40000 on 127.0.0.1 (Network is unreachable).\n"
    ), done.stderr


@pytest.mark.parametrize("settings", [multicast, unicast])
def test_closed_transport_is_one_sentence(settings: Callable[[], TransportSettings]) -> None:
    transport = open_transport(settings(), receiver=True)
    transport.close()
    with pytest.raises(UserError, match=r"^Frames cannot be received over UDP .*\(Bad file descriptor\)\.$"):
        transport.receive()
    if settings is multicast:
        with pytest.raises(UserError, match=r"^A frame cannot be sent over UDP .*\(Bad file descriptor\)\.$"):
            transport.send(b"x")


def filtered_pairs(opened: Opener) -> Iterator[tuple[Transport, Transport]]:
    """A sender and a receiver of each kind that is possible here."""
    settings = multicast()
    yield opened(settings), opened(settings)
    settings = unicast()
    receiver = opened(settings, receiver=True)
    yield opened(settings), receiver
    if sys.platform == "linux" and os.geteuid() == 0:
        yield opened(on_interface("lo")), opened(on_interface("lo"))


def accept_only(receiver: Transport, source: bytes) -> None:
    """Set the filter; what other tests sent over the same interface before is removed."""
    receiver.only_from(source)
    while receiver.receive() is not None:
        pass


@linux
def test_filter_passes_the_frames_of_one_source_only(opened: Opener) -> None:
    for sender, receiver in filtered_pairs(opened):
        wanted = new_mac()
        near = [wanted[:at] + bytes((wanted[at] ^ 1,)) + wanted[at + 1 :] for at in range(6)]
        accept_only(receiver, wanted)
        for source in (*near, wanted, *near, BROADCAST):
            sender.send(ethernet_frame(b"packet of " + source, source, wanted))
        with suppress(UserError):  # a network interface refuses it
            sender.send(wanted)  # too short for a source
        assert received(receiver, 3) == [ethernet_frame(b"packet of " + wanted, wanted, wanted)]
        assert is_silent(receiver)


@linux
def test_filter_cuts_no_frame(opened: Opener) -> None:
    for sender, receiver in filtered_pairs(opened):
        wanted = new_mac()
        accept_only(receiver, wanted)
        (largest,) = frames(1, wanted, LARGEST_FRAME)
        sender.send(largest)
        assert received(receiver, 1) == [largest]


@pytest.mark.parametrize("octets", [LARGEST_FRAME, LARGEST_FRAME + 1, 9000, 65_507])
def test_oversized_frame_is_cut_and_the_next_one_whole(octets: int, opened: Opener) -> None:
    settings = multicast()
    sender, receiver = opened(settings), opened(settings)
    source = new_mac()
    (oversized,), (following,) = frames(1, source, octets), frames(1, source)
    sender.send(oversized)
    sender.send(following)
    assert received(receiver, 2) == [oversized[:LARGEST_FRAME], following]


def test_frame_that_no_datagram_carries_is_one_sentence(opened: Opener) -> None:
    with pytest.raises(UserError, match=r"^A frame cannot be sent over UDP multicast .*\(Message too long\)\.$"):
        opened(multicast()).send(bytes(65_508))


@linux
@pytest.mark.skipif(sys.platform == "linux" and os.geteuid() != 0, reason="only root may pass the system's limit")
def test_burst_waits_in_the_socket(opened: Opener) -> None:
    """A second of 1,500 frames with certificate."""
    settings = multicast()
    sender, receiver = opened(settings), opened(settings)
    sent = frames(1500, new_mac(), 450)
    for frame in sent:
        sender.send(frame)
    assert received(receiver, 1500) == sent
