"""The cluster that tests of this folder share."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from tests.helpers.practice import practice_plugin_on_path
from tests.labconsole.hosts.cluster_processes import ClusterProcesses, cluster
from tests.labconsole.hosts.host_runs import DRIFT_PPM, SHIFT_NS


class SharedCluster:
    """One cluster for all tests of this folder that leave it as it was; `home` is that of its console."""

    def __init__(self, home: Path, folder_resources: ExitStack) -> None:
        self.home = home
        self._folder_resources = folder_resources
        self._running: ClusterProcesses | None = None

    def start(self) -> ClusterProcesses:
        """The cluster, started unless it is running: the hosts alpha (tag obu) and beta, whose clock is another one."""
        if self._running is None:
            with practice_plugin_on_path():
                running = self._folder_resources.enter_context(cluster(self.home))
                self._folder_resources.callback(self._forget)
                running.joins("alpha", self.home.parent / "alpha", "--tag", "obu")
                running.joins("beta", self.home.parent / "beta", clock_shift=f"{SHIFT_NS},{DRIFT_PPM}")
            self._running = running
        return self._running

    def _forget(self) -> None:
        self._running = None
