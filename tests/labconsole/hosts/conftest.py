"""The practice plugin, a console with a cluster that tests share, and its run queue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from labconsole.paths import HOME_VARIABLE
from tests.helpers.practice import Bench, practice_plugin_on_path
from tests.labconsole.hosts.cluster_processes import ClusterProcesses
from tests.labconsole.hosts.shared_cluster import SharedCluster


@pytest.fixture(scope="session")
def shared_cluster(folder_resources: ExitStack, tmp_path_factory: pytest.TempPathFactory) -> SharedCluster:
    """The cluster that tests share, which may not have started yet."""
    return SharedCluster(tmp_path_factory.mktemp("hosts") / "console", folder_resources)


@pytest.fixture(scope="module", autouse=True)
def practice_plugin() -> Iterator[None]:
    """The practice plugin is on the path of this process and of the hosts."""
    with practice_plugin_on_path():
        yield


@pytest.fixture(scope="module")
def home(shared_cluster: SharedCluster) -> Path:
    """The console's folder."""
    return shared_cluster.home


@pytest.fixture(scope="module")
def running(shared_cluster: SharedCluster) -> ClusterProcesses:
    """The cluster that tests share: they leave it as it was."""
    return shared_cluster.start()


@pytest.fixture
def bench(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A queue on a new database, of the console whose cluster it is; its workers are threads of the test process."""
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    with closing(Bench(tmp_path, in_threads=True)) as opened:
        yield opened


@pytest.fixture
def bench_of_processes(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """As `bench`, with workers that are processes, which a test can kill."""
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    with closing(Bench(tmp_path)) as opened:
        yield opened
