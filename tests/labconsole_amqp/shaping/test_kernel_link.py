"""`labconsole shape-link` as root: a shaped lab and a shaped interface, and nothing left of either, however it ends.

They are in the nightly set, which alone finds what the kernel does with the commands; the commands themselves are
compared in `test_tc_commands`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.signals import interruptible
from tests.helpers.tcp_rate import receiver_program, sender_program

if sys.platform != "linux":
    pytest.skip("tc and network namespaces are Linux's", allow_module_level=True)

import fcntl

from labconsole_amqp.shaping.kernel_link import has_rights

pytestmark = pytest.mark.nightly
COMMAND = [sys.executable, "-m", "labconsole.cli.main", "shape-link"]
NAMESPACES = ("labconsole-client", "labconsole-broker")
PROBE = "labconsole-test"


@pytest.fixture(autouse=True)
def kernel() -> Iterator[None]:
    """The kernel's settings, which one test at a time changes, and which are as before at its end."""
    if not has_rights():
        pytest.skip("needs root")
    if missing := [name for name in ("ip", "tc") if not shutil.which(name)]:
        pytest.skip(f"{missing[0]} is not installed")
    with Path(__file__).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if left():
            pytest.skip("a lab or shaped interface is in use on this computer")
        if ip("netns", "add", PROBE, check=False).returncode:
            pytest.skip("network namespaces cannot be created here")
        ip("netns", "delete", PROBE)
        try:
            yield
            assert not left()
        finally:
            subprocess.run([*COMMAND, "remove"], capture_output=True, timeout=60, check=True)


@pytest.fixture
def interface() -> Iterator[str]:
    """One end of a pair of interfaces of this computer."""
    name = f"lc{os.getpid()}"
    ip("link", "add", name, "type", "veth", "peer", "name", f"{name}p")
    try:
        yield name
    finally:
        ip("link", "delete", name)


def ip(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=30, check=check)


def left() -> list[str]:
    """Records and namespaces of links that are set up."""
    return [
        *map(str, Path("/run").glob("labconsole-shaped-*")),
        *(name for name in NAMESPACES if Path("/run/netns", name).exists()),
    ]


def root_qdisc(name: str) -> dict[str, object]:
    """The root queueing discipline of an interface, empty where it has none; and its limit of segments."""
    done = subprocess.run(["tc", "-j", "qdisc", "show", "dev", name, "root"], capture_output=True, check=True)
    link = json.loads(ip("-d", "-j", "link", "show", "dev", name).stdout)[0]
    qdisc = json.loads(done.stdout or "[]")
    return {"handle": qdisc[0]["handle"] if qdisc else "0:", "segments": link["gso_max_segs"]}


@contextmanager
def shaping(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The command once it is ready, and what it has said before; killed at the end."""
    with interruptible():
        process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = []
    try:
        while line := process.stdout.readline():
            said.append(line.rstrip("\n"))
            if line.startswith("Ready"):
                break
        else:
            raise AssertionError(process.communicate())
        yield process, said
    finally:
        process.kill()
        process.communicate()


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)


def rate_within(sender: str, receiver: str, address: str, seconds: float) -> float:
    """What TCP carries from a namespace to another, Mbit/s of IP packets."""
    process = subprocess.Popen(
        ["ip", "netns", "exec", receiver, *receiver_program(address)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline().split()[1])
        subprocess.run(["ip", "netns", "exec", sender, *sender_program(address, port, seconds)], check=True)
        return float(process.communicate(timeout=60)[0])
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_lab_carries_its_rates_and_is_removed_at_its_end(number: signal.Signals) -> None:
    with shaping("lab", "--link-rate", "4", "--link-rate-down", "8") as (process, said):
        client, broker = NAMESPACES
        # A busy computer may be slower; the exact figures are those of amqp_kernel_link.py.
        assert 3 < rate_within(client, broker, "10.0.0.2", 2) < 4.08
        assert 6 < rate_within(broker, client, "10.0.0.1", 2) < 8.16
        assert "Broker: ip netns exec labconsole-broker labconsole broker --host 10.0.0.2" in said
        process.send_signal(number)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (0, "Removed: the lab on this computer.\n", "")
    assert not left()


def test_what_a_killed_console_left_is_removed_by_the_next_start() -> None:
    with shaping("lab") as (process, _):
        process.kill()
        process.wait()
    assert len(left()) == 3
    with shaping("lab", "--link-rate", "3") as (process, said):
        assert said[0] == "The lab on this computer was left by a console that was killed, and is removed."
        process.terminate()
        process.communicate(timeout=60)
    assert not left()


def test_remove_leaves_what_a_console_uses_and_removes_what_a_killed_one_left(interface: str) -> None:
    with shaping("lab") as (process, _):
        with shaping("interface", "--client-interface", interface):
            pass
        assert root_qdisc(interface)["handle"] == "1ab:"
        removed = command("remove")
        assert removed.stdout.splitlines() == [
            f"Interface {interface} was left by a console that was killed, and is removed.",
            "The lab on this computer is in use by another console.",
        ]
        second = command("lab")
        assert second.returncode == 1 and "Another console has the lab" in second.stderr
        assert len(left()) == 3
        process.kill()
        process.wait()
        assert command("remove").returncode == 0
    assert not left()
    assert command("remove").stdout == "There is nothing to remove.\n"


def test_a_damaged_record_is_named() -> None:
    record = Path(f"/run/labconsole-shaped-interface-{PROBE}")
    record.write_text('{"name": "rv2')
    try:
        removed = command("remove")
    finally:
        record.unlink()
    assert removed.returncode == 1
    assert "is damaged: see by `tc qdisc show`" in removed.stderr and "Traceback" not in removed.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_interface_is_as_before_at_the_end(interface: str, number: signal.Signals) -> None:
    ip("link", "set", "dev", interface, "gso_max_segs", "40", "mtu", "9000")
    before = root_qdisc(interface)
    with shaping("interface", "--end", "broker", "--broker-interface", interface) as (process, said):
        assert root_qdisc(interface) == {"handle": "1ab:", "segments": 1}
        assert "burst 9,264 B" in said[0]
        other = command("interface", "--client-interface", interface)
        assert other.returncode == 1 and f"Another console shapes interface {interface}" in other.stderr
        process.send_signal(number)
        process.communicate(timeout=60)
    if number is signal.SIGKILL:
        assert root_qdisc(interface)["handle"] == "1ab:"
        assert "is removed" in command("remove").stdout
    assert root_qdisc(interface) == before


def test_a_queueing_discipline_of_the_operators_is_refused_and_kept(interface: str) -> None:
    own = ("handle", "7:", "tbf", "rate", "1mbit", "burst", "2000", "latency", "9ms")
    subprocess.run(["tc", "qdisc", "add", "dev", interface, "root", *own], check=True)
    done = command("interface", "--client-interface", interface)
    assert done.returncode == 1
    assert f"{interface} has a queueing discipline already, tbf 7:" in done.stderr
    assert root_qdisc(interface)["handle"] == "7:"


def test_namespaces_that_no_console_has_recorded_are_kept() -> None:
    ip("netns", "add", NAMESPACES[0])
    try:
        done = command("lab")
        assert done.returncode == 1 and "no console has recorded them" in done.stderr
        assert left() == [NAMESPACES[0]]
    finally:
        ip("netns", "delete", NAMESPACES[0])


def test_a_command_that_fails_undoes_those_before_it(interface: str) -> None:
    netem = ["tc", "qdisc", "add", "dev", interface, "root", "netem", "delay", "1ms"]
    if not subprocess.run(netem, capture_output=True, check=False).returncode:
        pytest.skip("the kernel has netem: no command fails")
    before = root_qdisc(interface)
    for arguments in (("interface", "--client-interface", interface), ("lab",)):
        done = command(*arguments, "--link-delay", "5")
        assert done.returncode == 1 and "This kernel has no netem" in done.stderr
        assert root_qdisc(interface) == before and not left()


@pytest.mark.parametrize(
    ("name", "sentence"), [("lo", "loopback"), ("none0", "Device"), (None, "give --client-interface")]
)
def test_an_interface_that_cannot_be_shaped_is_named(name: str | None, sentence: str) -> None:
    done = command("interface", *(["--client-interface", name] if name else []))
    assert done.returncode == 1 and sentence in done.stderr


def test_processes_that_still_run_in_the_lab_are_named() -> None:
    with shaping("lab") as (process, _):
        with subprocess.Popen(["ip", "netns", "exec", NAMESPACES[1], "sleep", "60"]) as sleeper:
            process.terminate()
            _, errors = process.communicate(timeout=60)
            sleeper.kill()
        assert f"end them (pid {sleeper.pid})" in errors
