"""The signing service in tests: the real role on a real spool in a thread; the test acts as its signers."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from labconsole.clock import now_ns
from labconsole.engine.protocol import ChannelFrame
from labconsole.engine.role import RoleProcess
from labconsole_keypool.choices import KeyOrigin
from labconsole_keypool.messages.service_frames import Busy, Done, End, Frame, Idle, Job, JobStatus, Member, Want
from labconsole_keypool.service.connections import (
    LinkClosedError,
    ServiceLink,
    admit_command,
    connect,
    connect_command,
    start_command,
)
from labconsole_keypool.service.service_parameters import ServiceParameters
from labconsole_keypool.service.service_role import ServiceRole
from tests.helpers.spool_samples import SpoolSamples

TOKEN = bytes(range(32))
_TIMEOUT_S = 60.0


class Service:
    """One run of the service; as a context manager it is stopped at the end, if it has not ended by itself."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._changed = threading.Condition()
        self._messages: list[Mapping[str, Any]] = []
        parameters = ServiceParameters(**settings).model_dump(mode="json")
        task = {"name": "service", "settings": {"parameters": parameters, "seed": 1}, "secrets": {}, "live_hz": 20.0}
        task |= {"files": {}, "address": "127.0.0.1", "spool": str(folder / "service.spool")}
        self.context = RoleProcess(self, task)  # type: ignore[arg-type]
        self._links: list[ServiceLink] = []
        self.role = ServiceRole(self.context)
        self._thread = threading.Thread(target=self._conduct)

    def __enter__(self) -> Self:
        self.port = self.role.prepare()["port"]
        self._thread.start()
        self.context.on_message({"t": "command", "command": admit_command(TOKEN)})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._thread.join(_TIMEOUT_S)

    def _conduct(self) -> None:
        try:
            self.role.run()
        finally:
            self.context.send_live()
            self.role.close()
            self.context.close()

    def send(self, message: Mapping[str, Any]) -> None:
        """Receive a message of the role to its worker."""
        with self._changed:
            self._messages.append(message)
            self._changed.notify_all()

    def last_message(self, kind: str) -> Mapping[str, Any]:
        """Wait for messages of this kind, and return the last one."""

        def found() -> list[Mapping[str, Any]]:
            return [message for message in self._messages if message["t"] == kind]

        with self._changed:
            assert self._changed.wait_for(found, _TIMEOUT_S), f"the service sent no {kind}: {self._messages[-1:]}"
            return found()[-1]

    def let_requests_come(self) -> int:
        """T0 is now; returns it."""
        begin_ns = now_ns()
        self.context.on_message({"t": "command", "command": start_command(begin_ns)})
        return begin_ns

    def stop(self) -> None:
        """Cancel."""
        self.context.on_message({"t": "stop"})

    def link(self, member: Member = Member.SIGNER, name: str = "signer-1", token: bytes = TOKEN) -> ServiceLink:
        """Connect to it."""
        link = connect(connect_command(self.port, token), member, name)
        self._links.append(link)
        return link

    def until_threads(self, threads: int) -> None:
        """Wait until the service knows of so many threads of its signers."""
        deadline_ns = now_ns() + int(_TIMEOUT_S * 1e9)
        while self.role.threads != threads:
            assert now_ns() < deadline_ns, f"{self.role.threads} threads and not {threads}"
            time.sleep(0.002)

    def live(self, channel: str) -> int:
        """The last count of a live channel."""
        return ChannelFrame.from_json(self.last_message("live")["channels"][channel]).count

    def samples(self) -> SpoolSamples:
        """Wait for the end, which its clients read before they disconnect, and return the recorded samples."""
        for link in self._links:
            with suppress(LinkClosedError, ValueError):  # gone, or closed by the test
                while End() not in (frames := link.receive(_TIMEOUT_S)) and frames:
                    pass
            link.close()
        self._thread.join(_TIMEOUT_S)
        return SpoolSamples.read(self._folder)


class Signer:
    """A signer with so many threads that answers when the test calls `answer`."""

    def __init__(self, service: Service, threads: int, name: str = "signer-1") -> None:
        self.link = service.link(name=name)
        self.jobs: list[Job] = []
        self.signals: list[Idle | Busy] = []
        before = service.role.threads
        self.link.send(Want(threads))
        service.until_threads(before + threads)

    def wait_for(self, jobs: int) -> None:
        """Until it has been given so many in all."""
        while len(self.jobs) < jobs:
            assert self.receive(), "nothing came"

    def receive(self, timeout_s: float = _TIMEOUT_S) -> list[Frame]:
        """The next frames."""
        frames = self.link.receive(timeout_s)
        self.jobs += [frame for frame in frames if isinstance(frame, Job)]
        self.signals += [frame for frame in frames if isinstance(frame, Idle | Busy)]
        return frames

    def answer(self, job: Job, *, status: JobStatus = JobStatus.SIGNED, key: int = 0) -> None:
        """Sign, and have a thread idle again."""
        now = now_ns()
        source = KeyOrigin.POOL if key else KeyOrigin.GENERATED
        self.link.send(Done(job.request, now, now, now, now, source, status, b"certificate", key), Want(1))
