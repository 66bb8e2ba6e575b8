"""The source's test bench in small: 15 senders on two hosts, the receiver on a third, by real agents over Dask.

Nightly: agents are tested with other trials in CI, and stations on hosts without agents (`test_stations_on_hosts`); a
fault of both together is found here alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from labconsole.cli.main import main
from labconsole.paths import HOME_VARIABLE
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from tests.helpers.host_network import NETWORKS, network_of
from tests.labconsole.hosts.cluster_processes import ClusterProcesses, cluster

S = 1_000_000_000
PROFILE = """
format = 1
kind = "v2x.live"

[parameters]
senders = 15
processes = 2
rate = 2.0
duration = 4.0
warm_up = 1.0

[hosts]
scheduler = "{scheduler}"

[[hosts.roles]]
role = "stations-*"
tag = "obu"

[[hosts.roles]]
role = "receiver"
host = "roadside"
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The console's folder."""
    return tmp_path_factory.mktemp("agents") / "console"


@pytest.fixture(scope="module", params=NETWORKS)
def running(home: Path, request: pytest.FixtureRequest) -> Iterator[ClusterProcesses]:
    """Two hosts of vehicles, and one at the road; each has a clock of its own."""
    with network_of(request.param) as network, cluster(home, network) as found:
        found.joins("obu-1", home.parent / "obu-1", "--tag", "obu", clock_shift=f"{300 * S},-20")
        found.joins("obu-2", home.parent / "obu-2", "--tag", "obu")
        found.joins("roadside", home.parent / "roadside")
        yield found


@pytest.mark.nightly
def test_15_senders_on_two_hosts_are_heard_by_a_receiver_on_a_third(
    running: ClusterProcesses, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    profile = tmp_path / "bench.toml"
    profile.write_text(PROFILE.format(scheduler=running.address))
    database = tmp_path / "runs.db"
    code = main(["run", str(profile), "--db", str(database)])
    with Reader(database) as reader:
        run = reader.run(1)
    assert code == 0 and run.row.status is RunStatus.FINISHED, run.row.reason
    hosts = {role.name: role.host for role in run.roles}
    assert len(hosts) == 3 and {hosts[name] for name in hosts if name.startswith("stations")} == {"obu-1", "obu-2"}
    metrics = {name: metric.value for name, metric in run.row.metrics.items()}
    assert metrics["hosts"] == 3 and metrics["packet_loss"] < 5
    # Signing, the way and verifying take milliseconds; the clocks differ by minutes.
    assert 0 < metrics["latency_p50"] < 1000
