"""Files of samples on a host and on their way from it: full disks, large files, names that are none."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
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


def test_a_file_that_becomes_shorter_on_its_host_is_reported(tmp_path: Path) -> None:
    class Shortened(OneHost):
        """It has less than it has said."""

        def call(self, host: str, method: str, *arguments: Any, timeout_s: float = 10.0) -> Any:
            found = super().call(host, method, *arguments, timeout_s=timeout_s)
            return found[arguments[2] : 4] if method == "read" else found

    with pytest.raises(UserError, match=r"sender\.spool became shorter on alpha"):
        bring(cast(Cluster, Shortened("sender.spool", b"samples")), "alpha", RUN, tmp_path / "alpha")


def test_folders_of_no_run_are_not_offered_as_samples(tmp_path: Path) -> None:
    for name in (RUN, "lost+found"):
        (tmp_path / name).mkdir()
    assert HostedRuns(tmp_path, "alpha").held() == {RUN: []}


def test_a_folder_that_cannot_be_read_is_not_reported_as_a_lost_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / RUN).mkdir()
    listed = Path.iterdir

    def denied(path: Path) -> Iterator[Path]:
        if path.name == RUN:
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", denied)  # tests may run as root, who is denied nothing
    with pytest.raises(UserError, match=rf"alpha cannot work with .*{RUN} \(Permission denied\)"):
        HostedRuns(tmp_path, "alpha").held()
