"""Broker, receiver and sender on three hosts with networks of their own (namespaces), behind links of 20 Mbit/s.

They are in the nightly set: only there would a run that does not use the link between its hosts be found. Runs on hosts
without such a network are in `test_runs_on_agents`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from labconsole.cli.main import main
from labconsole.paths import HOME_VARIABLE
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from tests.helpers.host_network import RATE_MBIT, Namespaces, namespaces
from tests.labconsole.hosts.cluster_processes import ClusterProcesses, cluster

pytestmark = pytest.mark.nightly
HOSTS = ("hub", "left", "right")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The console's folder."""
    return tmp_path_factory.mktemp("namespaces") / "console"


@pytest.fixture(scope="module")
def network() -> Iterator[Namespaces]:
    """A namespace for each host, and this computer as the console."""
    with namespaces() as found:
        yield found


@pytest.fixture(scope="module")
def running(network: Namespaces, home: Path) -> Iterator[ClusterProcesses]:
    """The scheduler on the console's computer, and an agent in each namespace."""
    with cluster(home, network) as found:
        for host in HOSTS:
            found.joins(host, home.parent / host)
        yield found


@pytest.mark.parametrize("test", [1, 2, 3, 4])
def test_the_link_between_the_hosts_carries_the_messages(
    running: ClusterProcesses,
    network: Namespaces,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    test: int,
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
    assert f"Connected to {network.address('hub')}:" in reached and "127.0.0.1" not in reached
