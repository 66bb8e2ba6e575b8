"""The network between the hosts of a test: loopback, or namespaces of this computer behind shaped links to a bridge."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

RATE_MBIT = 20
"""What a link carries in each direction."""
_RATE, _BURST, _PACKET = f"{RATE_MBIT}mbit", 16_000, 1600
"""The rate, the bytes that pass at once, and the bytes of the largest packet."""
_CONSOLE, _FIRST_HOST, _ANOTHER = 1, 11, 100
"""The last octet of the addresses of the console, of the host that was added first, and what is added for another."""
_BRIDGE_MAC = "02:00:00:00:00:01"
"""A bridge without an address of its own takes another one when a cable is added: hosts would miss it for seconds."""


class Loopback:
    """All hosts have the address of this computer."""

    console = "127.0.0.1"

    def within(self, host: str) -> tuple[str, ...]:
        """The command that starts others on a host."""
        return ()


class Namespaces:
    """Each host has a network namespace with a cable to the bridge on which this computer is the console.

    Both ends of a cable are shaped. A host is added when it is first used.
    """

    def __init__(self, closing: ExitStack) -> None:
        """Raises OSError and CalledProcessError: the kernel cannot, or this process may not."""
        self._closing = closing
        self._bridge = f"lc{os.getpid() % 100_000}"
        self._net = f"10.{os.getpid() % 200 + 20}.{os.getpid() // 200 % 250}"
        self._numbers: dict[str, int] = {}
        _ip("link", "add", self._bridge, "address", _BRIDGE_MAC, "type", "bridge")
        closing.callback(_ip, "link", "delete", self._bridge)
        _ip("address", "add", f"{self.console}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")

    @property
    def console(self) -> str:
        """The address of this computer."""
        return f"{self._net}.{_CONSOLE}"

    def address(self, host: str) -> str:
        """The address that a host has at first."""
        return f"{self._net}.{self._number(host)}"

    def within(self, host: str) -> tuple[str, ...]:
        """The command that starts others on a host."""
        self._number(host)
        return ("ip", "netns", "exec", self._namespace(host))

    def pull_cable(self, host: str) -> None:
        """Pull the cable of a host out of the bridge: both ends lose the carrier."""
        _ip("link", "set", self._port(host), "down")

    def plug_cable(self, host: str) -> None:
        """Plug it in again."""
        _ip("link", "set", self._port(host), "up")

    def give_other_address(self, host: str) -> str:
        """Give a host another address, as DHCP may after its cable was pulled; returns it."""
        address = f"{self._net}.{self._number(host) + _ANOTHER}"
        _ip("-n", self._namespace(host), "address", "flush", "dev", "eth0")
        _ip("-n", self._namespace(host), "address", "add", f"{address}/24", "dev", "eth0")
        return address

    @contextmanager
    def slow_from(self, host: str, rate: str) -> Iterator[None]:
        """What the link of a host carries from it is less in the block ("1mbit"), to it as before."""
        where = ("-n", self._namespace(host))
        _shape("eth0", rate, _PACKET, *where)
        try:
            yield
        finally:
            _shape("eth0", _RATE, _BURST, *where)

    def _number(self, host: str) -> int:
        if host not in self._numbers:
            self._numbers[host] = _FIRST_HOST + len(self._numbers)
            self._add(host)
        return self._numbers[host]

    def _add(self, host: str) -> None:
        namespace, port = self._namespace(host), self._port(host)
        _ip("netns", "add", namespace)
        self._closing.callback(_ip, "netns", "delete", namespace)
        _ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        self._closing.callback(_ip, "link", "delete", port)
        _ip("link", "set", port, "master", self._bridge, "up")
        _ip("-n", namespace, "address", "add", f"{self.address(host)}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", namespace, "link", "set", device, "up")
        _shape(port, _RATE, _BURST)
        _shape("eth0", _RATE, _BURST, "-n", namespace)

    def _namespace(self, host: str) -> str:
        return f"{self._bridge}-{host}"

    def _port(self, host: str) -> str:
        return f"{self._bridge}p{self._numbers[host]}"


Network = Loopback | Namespaces
NETWORKS = ("loopback", "namespaces")
"""For tests that run over both."""


@contextmanager
def network_of(name: str) -> Iterator[Network]:
    """One of `NETWORKS` for the block; skips the test where it cannot be set up."""
    if name == "loopback":
        yield Loopback()
    else:
        with namespaces() as network:
            yield network


@contextmanager
def namespaces() -> Iterator[Namespaces]:
    """A network of namespaces that is removed with the block; skips the test where it needs rights or the kernel."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("network namespaces need root on Linux")
    if missing := [name for name in ("ip", "tc") if not shutil.which(name)]:
        pytest.skip(f"{missing[0]} is not installed")
    with ExitStack() as closing:
        try:
            network = Namespaces(closing)
            network.within("probe")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"this kernel has no bridges or network namespaces for tests: {error.stderr}")
        yield network


def _ip(*arguments: str) -> None:
    _command("ip", *arguments)


def _shape(device: str, rate: str, burst: int, *where: str) -> None:
    bucket = ("root", "tbf", "rate", rate, "burst", str(burst), "latency", "200ms")
    _command("tc", *where, "qdisc", "replace", "dev", device, *bucket)


def _command(*arguments: str) -> None:
    """A command of iproute2 that must succeed."""
    subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=20)
