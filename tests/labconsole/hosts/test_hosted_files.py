"""Files of samples on a host and on their way from it: full disks, large files, names that are none."""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from labconsole.engine.child_channel import ChildChannel
from labconsole.engine.launcher import Launcher
from labconsole.engine.run_end import WorkerRun
from labconsole.engine.worker import _brought
from labconsole.errors import UserError
from labconsole.hosts.agent.hosted_runs import HostedRun, HostedRuns
from labconsole.hosts.cluster import Cluster
from labconsole.hosts.samples.collecting import PIECE_S, bring
from labconsole.store.records import RunStatus

RUN = str(uuid.uuid4())


class OneHost:
    """A cluster whose host has one file; `timeouts_s` of the calls by method."""

    def __init__(self, name: str, content: bytes, size: int | None = None) -> None:
        self.timeouts_s: dict[str, float] = {}
        self._name, self._content, self._size = name, content, size or len(content)

    def call(self, host: str, method: str, *arguments: Any, timeout_s: float = 10.0) -> Any:
        """As `Cluster.call`."""
        self.timeouts_s[method] = timeout_s
        contents = {self._name: (len(self._content), hashlib.sha256(self._content).hexdigest())}
        return {"end": None, "size": self._size, "contents": contents, "read": self._content}[method]


def test_a_host_may_hash_large_samples_for_longer_than_it_may_be_silent(tmp_path: Path) -> None:
    cluster = OneHost("sender.spool", b"samples", size=5_000_000_000)
    assert bring(cast(Cluster, cluster), "alpha", RUN, tmp_path / "alpha") == len(b"samples")
    assert cluster.timeouts_s["contents"] > 60 and cluster.timeouts_s["read"] == PIECE_S


@pytest.mark.parametrize("name", ["../planted.spool", "beta/../../planted.spool", ".hidden", ""])
def test_a_host_cannot_name_a_file_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="cannot be one of samples"):
        bring(cast(Cluster, OneHost(name, b"planted")), "alpha", RUN, tmp_path / "alpha")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fails_on_a_host_is_not_reported_as_a_lost_host(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("not a folder")
    hosted = HostedRuns(tmp_path / "runs", "alpha")
    for work in (
        lambda: hosted.put(RUN, "0" * 64, 0, b"payload"),
        lambda: hosted.contents(RUN),
        lambda: hosted.read(RUN, "sender.spool", 0, 10),
    ):
        with pytest.raises(UserError, match=r"alpha cannot work with .*runs.*: check the disk of that host"):
            work()


def test_an_agent_survives_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_with_a_full_disk(self: object) -> None:
        raise UserError("Samples cannot be written: No space left on device.")

    monkeypatch.setattr("labconsole.engine.usage.UsageMeter.read", read_with_a_full_disk)
    run = HostedRun(tmp_path, "alpha", 0)
    run.look()
    run.close()


def test_a_cancelled_run_is_not_killed_while_its_samples_are_brought() -> None:
    order: list[str] = []

    class Parts:
        """What `_brought` uses: launcher, store and channel."""

        hosts: ClassVar = {"alpha": {"cores": 2}}
        id = 1

        @property
        def store(self) -> Parts:
            return self

        def amend_provenance(self, run_id: int, **found: Any) -> None:
            order.append("hosts")

        def send(self, message: dict[str, Any]) -> None:
            order.append(message["t"])

        def finish(self) -> None:
            order.append("bring")

    parts = Parts()
    launcher, run, channel = cast(Launcher, parts), cast(WorkerRun, parts), cast(ChildChannel, parts)
    assert _brought(launcher, run, channel, RunStatus.CANCELLED, "Cancelled.") == (RunStatus.CANCELLED, "Cancelled.")
    assert order.index("settling") < order.index("bring")
