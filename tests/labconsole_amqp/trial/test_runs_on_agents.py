"""Tests 1 to 4 with broker, receiver and sender on three hosts: real agents, over Dask, with clocks of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from labconsole.cli.main import main
from labconsole.paths import HOME_VARIABLE
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from tests.helpers.worker_threads import workers_in_threads
from tests.labconsole.hosts.cluster_processes import ClusterProcesses, cluster

S = 1_000_000_000
PAYLOAD_FILE = b"FPL-ABC123-IS -A320/M-SDE2 -WMKK0100 -N0450F350 DCT -WSSS0100"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The console's folder."""
    return tmp_path_factory.mktemp("agents") / "console"


@pytest.fixture(scope="module")
def running(home: Path) -> Iterator[ClusterProcesses]:
    """Three hosts; the clocks of two differ from the console's, and one drifts."""
    with cluster(home) as found:
        found.joins("hub", home.parent / "hub", clock_shift=f"{77 * S}")
        found.joins("left", home.parent / "left", "--tag", "sends")
        found.joins("right", home.parent / "right", clock_shift=f"{5000 * S},40")
        yield found


@pytest.mark.parametrize("test", [*(pytest.param(test, marks=pytest.mark.nightly) for test in (1, 2, 3)), 4])
def test_a_test_of_the_source_over_three_hosts(
    running: ClusterProcesses,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    test: int,
) -> None:
    """Tests 1 to 3 are in the nightly set: Test 4 has their TLS and signatures.

    Test 1 alone finds that agents cannot do without keys; roles without keys run on hosts in `test_runs_on_hosts`.
    """
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    (tmp_path / "flight.txt").write_bytes(PAYLOAD_FILE)
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(
        f'scheduler = "{running.address}"\n'
        '[[roles]]\nrole = "broker"\nhost = "hub"\n'
        '[[roles]]\nrole = "sender-*"\ntag = "sends"\n'
        '[[roles]]\nhost = "right"\n'
    )
    # An open loop: latency from T0 on, and every message counted.
    given = {"test": test, "payload": str(tmp_path / "flight.txt"), "loop": "open", "count": 60, "rate": 100.0}
    given |= {"senders": 2, "numbered": "true"}
    settings = [part for name, value in given.items() for part in ("--set", f"{name}={value}")]
    database = tmp_path / "runs.db"
    with workers_in_threads():
        code = main(["run", _profile(tmp_path), *settings, "--hosts", str(hosts), "--db", str(database)])
    with Reader(database) as reader:
        run = reader.run(1)
    assert code == 0 and run.row.status is RunStatus.FINISHED, run.row.reason
    metrics = {name: metric.value for name, metric in run.row.metrics.items()}
    assert (metrics["sent"], metrics["received"], metrics["lost"]) == (120, 120, 0)
    assert metrics["failed_verifications"] == 0 and metrics["hosts"] == 3
    assert main(["show", "1", "--db", str(database)]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"latency_p50 +-?[\d.,]+ ± [\d.,]+ +[mµ]s", shown) and "\n± is how uncertain" in shown
    # Each clock is another one: an hour of difference would show, and so would a wrong sign.
    assert -metrics["clock_uncertainty"] / 1000 < metrics["latency_min"] < metrics["latency_p50"] < 1000
    assert {role.name: role.host for role in run.roles} == {
        "broker": "hub",
        "receiver-0": "right",
        "sender-0": "left",
        "sender-1": "left",
    }
    _holds_no_secret(home / "agent")


def _profile(folder: Path) -> str:
    """A profile of one run with the parameters that the console has by default."""
    path = folder / "three.toml"
    path.write_text('format = 1\nkind = "amqp.messaging"\n')
    return str(path)


def _holds_no_secret(folder: Path) -> None:
    """Nothing of a run is left on the hosts, and no private key was ever written there."""
    assert not [path for path in folder.rglob("*") if path.is_file() and b"PRIVATE KEY" in path.read_bytes()]
    assert not list((folder / "hosts" / "runs").glob("*/*"))
