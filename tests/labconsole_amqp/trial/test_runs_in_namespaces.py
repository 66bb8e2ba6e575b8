"""Broker, receiver and sender on three hosts with networks of their own (namespaces), behind links of 20 Mbit/s."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from labconsole.cli.main import main
from labconsole.paths import HOME_VARIABLE
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from tests.labconsole.hosts.cluster_processes import ClusterProcesses, cluster

HOSTS = {"hub": 11, "left": 12, "right": 13}
"""The last octet of each host's address."""
RATE_MBIT = 20
_NAME = f"lc{os.getpid() % 100_000}"
_NET = f"10.{os.getpid() % 200 + 20}.{os.getpid() // 200 % 250}"


def command(*arguments: str) -> None:
    """A command of iproute2 that must succeed."""
    subprocess.run(arguments, check=True, capture_output=True, timeout=20)


@pytest.fixture(scope="module")
def network() -> Iterator[None]:
    """A bridge of this computer, and a namespace for each host with a link to it, shaped in both directions."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("network namespaces need root on Linux")
    with ExitStack() as undo:
        try:
            command("ip", "link", "add", _NAME, "type", "bridge")
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("this kernel makes no bridges")
        undo.callback(command, "ip", "link", "delete", _NAME)
        command("ip", "address", "add", f"{_NET}.1/24", "dev", _NAME)
        command("ip", "link", "set", _NAME, "up")
        for host, number in HOSTS.items():
            namespace, port = f"{_NAME}-{host}", f"{_NAME}p{number}"
            command("ip", "netns", "add", namespace)
            undo.callback(command, "ip", "netns", "delete", namespace)
            command("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", namespace)
            command("ip", "link", "set", port, "master", _NAME, "up")
            command("ip", "-n", namespace, "address", "add", f"{_NET}.{number}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                command("ip", "-n", namespace, "link", "set", device, "up")
            shape = ("root", "tbf", "rate", f"{RATE_MBIT}mbit", "burst", "16000", "latency", "200ms")
            command("tc", "qdisc", "add", "dev", port, *shape)
            command("tc", "-n", namespace, "qdisc", "add", "dev", "eth0", *shape)
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The console's folder."""
    return tmp_path_factory.mktemp("namespaces") / "console"


@pytest.fixture(scope="module")
def running(network: None, home: Path) -> Iterator[ClusterProcesses]:
    """The scheduler on the bridge, and an agent in each namespace."""
    with cluster(home, f"{_NET}.1") as found:
        for host in HOSTS:
            found.joins(host, home.parent / host, within=("ip", "netns", "exec", f"{_NAME}-{host}"))
        yield found


@pytest.mark.parametrize("test", [2, 4])
def test_the_link_between_the_hosts_carries_the_messages(
    running: ClusterProcesses, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, test: int
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    profile, hosts, database = tmp_path / "three.toml", tmp_path / "hosts.toml", tmp_path / "runs.db"
    profile.write_text('format = 1\nkind = "amqp.messaging"\n')
    given = (f"test={test}", "payload=fpl-fixm", "loop=closed", "count=150", f"link_rate={RATE_MBIT}")
    settings = [part for one in given for part in ("--set", one)]
    hosts.write_text(
        f'scheduler = "{running.address}"\n'
        + "".join(
            f'[[roles]]\nrole = "{role}"\nhost = "{host}"\n'
            for role, host in (("broker", "hub"), ("sender-*", "left"), ("receiver-*", "right"))
        )
    )
    code = main(["run", str(profile), *settings, "--hosts", str(hosts), "--db", str(database)])
    with Reader(database) as reader:
        run = reader.run(1)
    assert code == 0 and run.row.status is RunStatus.FINISHED, run.row.reason
    metrics = {name: metric.value for name, metric in run.row.metrics.items()}
    assert (metrics["lost"], metrics["hosts"], metrics["failed_verifications"]) == (0, 3, 0)
    # 42.7 KB a message: the link carries some 57 a second, loopback many thousands.
    assert 35 < metrics["throughput"] < 60
    assert metrics["link_use"] > 60
    (reached,) = (verdict.reason for verdict in run.verdicts if verdict.name == "preflight: TCP")
    assert f"Connected to {_NET}.{HOSTS['hub']}:" in reached and "127.0.0.1" not in reached
