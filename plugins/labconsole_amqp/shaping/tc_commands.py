"""The `ip` and `tc` commands (iproute2) that shape a link in the Linux kernel, and those that end it.

The rate is that of IP packets, as the built-in shaper has it, and what the bucket allows above it is the same: one
packet, and 1 ms of the rate for a timer that is late.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

HANDLE = "1ab:"
"""The handle of the root queueing discipline: what ends the shaping names it, and never removes another one."""
CLIENT_NAMESPACE, BROKER_NAMESPACE = "labconsole-client", "labconsole-broker"
CLIENT_ADDRESS, BROKER_ADDRESS = "10.0.0.1", "10.0.0.2"
"""Of the lab's two network namespaces, which no other network reaches."""
LAB_INTERFACE = "shaped0"
"""The name of both ends of the lab's link, each in its namespace."""
ETHERNET_HEADER = 14
"""Octets of a frame that the kernel counts and that are not of the IP packet."""
DEFAULT_MTU, DEFAULT_GSO_SEGMENTS = 1500, 65_535
_LATE_S = 1e-3
_QUEUE_OCTETS, _LEAST_LATENCY_S = 65_536, 0.05
_LEAST_DELAYED_PACKETS = 1000

Command = tuple[str, ...]
"""A program and its arguments."""


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface as the commands need it; `gso_segments` is what its limit was before."""

    name: str
    mtu: int = DEFAULT_MTU
    header: int = ETHERNET_HEADER
    gso_segments: int = DEFAULT_GSO_SEGMENTS
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class OneWay:
    """What one end of a link sends: `rate` in bit/s of IP packets, and the delay on its way in s."""

    rate: float
    delay_s: float = 0.0

    def burst(self, interface: Interface) -> int:
        """Octets that may leave at once: a packet, and what a timer that is 1 ms late leaves behind."""
        return interface.mtu + ETHERNET_HEADER + math.ceil(self.rate / 8 * _LATE_S)

    @property
    def latency_ms(self) -> int:
        """The longest time that a packet waits before it is dropped, ms: 64 KiB of queue, and at least 50 ms."""
        return math.ceil(1e3 * max(_LEAST_LATENCY_S, _QUEUE_OCTETS * 8 / self.rate))

    def commands(self, interface: Interface) -> tuple[Command, ...]:
        """The commands that shape what leaves by an interface.

        Packets are limited to one segment (`gso_max_segs`), as they are on the wire: of larger ones the kernel would
        count one header. A delay needs netem, which then is in front of the bucket.
        """
        tc = ("tc", *_within(interface.namespace), "qdisc", "add", "dev", interface.name)
        overhead = ("stab", "overhead", f"-{interface.header}") if interface.header else ()
        rate = ("rate", f"{self.rate / 1e6:.10g}mbit")
        bucket = (*overhead, "tbf", *rate, "burst", str(self.burst(interface)), "latency", f"{self.latency_ms}ms")
        limit = set_gso_segments(interface, 1)
        if not self.delay_s:
            return limit, (*tc, "root", "handle", HANDLE, *bucket)
        delayed = max(_LEAST_DELAYED_PACKETS, math.ceil(2 * self.rate * self.delay_s / 8 / interface.mtu))
        delay = ("netem", "delay", f"{self.delay_s * 1e3:.10g}ms", "limit", str(delayed))
        return limit, (*tc, "root", "handle", HANDLE, *delay), (*tc, "parent", f"{HANDLE}1", *bucket)


def set_gso_segments(interface: Interface, count: int) -> Command:
    """The command that limits how many segments the kernel hands to an interface as one packet."""
    ip = ("ip", *_within(interface.namespace))
    return (*ip, "link", "set", "dev", interface.name, "gso_max_segs", str(count))


def undo_commands(interface: Interface) -> tuple[Command, ...]:
    """The commands that end the shaping of an interface."""
    remove = ("tc", *_within(interface.namespace), "qdisc", "del", "dev", interface.name, "root", "handle", HANDLE)
    return remove, set_gso_segments(interface, interface.gso_segments)


def lab_commands(up: OneWay, down: OneWay) -> tuple[Command, ...]:
    """The commands for two network namespaces and a link between them that is shaped at both ends."""
    ends = ((CLIENT_NAMESPACE, CLIENT_ADDRESS, up), (BROKER_NAMESPACE, BROKER_ADDRESS, down))
    commands: list[Command] = [("ip", "netns", "add", namespace) for namespace, _, _ in ends]
    pair = ("type", "veth", "peer", "name", LAB_INTERFACE, "netns", BROKER_NAMESPACE)
    commands.append(("ip", "-n", CLIENT_NAMESPACE, "link", "add", LAB_INTERFACE, *pair))
    for namespace, address, one_way in ends:
        ip = ("ip", "-n", namespace)
        commands += one_way.commands(Interface(LAB_INTERFACE, namespace=namespace))
        commands.append((*ip, "address", "add", f"{address}/30", "dev", LAB_INTERFACE))
        commands += [(*ip, "link", "set", "dev", name, "up") for name in ("lo", LAB_INTERFACE)]
    return tuple(commands)


def lab_undo_commands() -> tuple[Command, ...]:
    """The commands that remove the link, also from processes that still run in the namespaces, and both of these."""
    link = ("ip", "-n", CLIENT_NAMESPACE, "link", "delete", "dev", LAB_INTERFACE)
    return link, ("ip", "netns", "delete", CLIENT_NAMESPACE), ("ip", "netns", "delete", BROKER_NAMESPACE)


def lines(commands: Iterable[Command]) -> tuple[str, ...]:
    """Commands as they are typed."""
    return tuple(map(shlex.join, commands))


def _within(namespace: str) -> Command:
    return ("-n", namespace) if namespace else ()
