"""The practice plugin, a console with a cluster that tests share, and its run queue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from labconsole.paths import HOME_VARIABLE
from tests.helpers.practice import Bench, practice_plugin_on_path
from tests.labconsole.hosts.cluster_processes import ClusterProcesses, cluster
from tests.labconsole.hosts.host_runs import DRIFT_PPM, SHIFT_NS


class SharedCluster:
    """One cluster for all tests of this folder that leave it as it was; `home` is that of its console."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._processes = ExitStack()
        self._running: ClusterProcesses | None = None

    def start(self) -> ClusterProcesses:
        """The cluster, started unless it is running: the hosts alpha (tag obu) and beta, whose clock is another one."""
        if self._running is None:
            with practice_plugin_on_path():
                running = self._processes.enter_context(cluster(self.home))
                running.joins("alpha", self.home.parent / "alpha", "--tag", "obu")
                running.joins("beta", self.home.parent / "beta", clock_shift=f"{SHIFT_NS},{DRIFT_PPM}")
            self._running = running
        return self._running

    def close(self) -> None:
        """End its processes."""
        self._processes.close()
        self._running = None


_SHARED = pytest.StashKey[SharedCluster]()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the shared cluster with the last test of this folder: its processes would take time of all others."""
    shared = item.session.stash.get(_SHARED, None)
    if shared is not None and (nextitem is None or nextitem.path.parent != item.path.parent):
        shared.close()


@pytest.fixture(scope="session")
def shared_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SharedCluster:
    """The cluster that tests share, which may not have started yet."""
    return request.session.stash.setdefault(_SHARED, SharedCluster(tmp_path_factory.mktemp("hosts") / "console"))


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
    """A queue on a new database, of the console whose cluster it is."""
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    opened = Bench(tmp_path)
    yield opened
    opened.close()
