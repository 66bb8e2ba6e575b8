"""Starts the roles of a run on the hosts that its scenario asks for, compares their clocks, brings their samples."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from labconsole.analysis.number_format import format_figure
from labconsole.clock import clock_domain, now_ns
from labconsole.clock_comparison import AFTER, BEFORE, DURING, Offset, together_ns
from labconsole.engine.launcher import LaunchedRole, LocalLauncher, RoleStart, role_task
from labconsole.engine.spool import SpoolWriter
from labconsole.errors import UserError
from labconsole.hosts.agent.hosted_role import Lines
from labconsole.hosts.clock_events import comparisons
from labconsole.hosts.cluster import ANSWER_S, Cluster, Host
from labconsole.hosts.samples.collected import collected_folder
from labconsole.hosts.samples.collecting import PIECE, PIECE_S, bring
from labconsole.model.placement import Placement, RoleRequest, fault_of
from labconsole.model.series import Event, Level
from labconsole.security.private_files import PRIVATE_KEY_MARK

_POLL_S = 2.0
_KILL_S = 2.0
_COMPARE_EVERY_S = 10.0
_EXCHANGES_DURING = 20
_LEAD_RTTS = 4
_AT_ONCE = 4
"""Hosts that are asked at one time: more would wait for each other, and their clocks be known less well."""
SAMPLES_STAY = "samples stay"
"""Event: the samples of a host stay there until they are collected; data: `host`, `bytes`."""

T = TypeVar("T")
_ENCRYPTED = "ENCRYPTED PRIVATE KEY-----"


@dataclass(frozen=True)
class HostRun:
    """The run that roles are started for: `spool` is the directory of its spool files, `needed` is what its samples
    need on a disk, bytes."""

    uuid: str
    spool: Path
    needed: int


class HostLauncher:
    """`Launcher` of a run with hosts; `local` starts the roles that stay on this computer."""

    def __init__(self, cluster: Cluster, placement: Placement, run: HostRun, local: LocalLauncher) -> None:
        """Look at all hosts; those that do not answer get no role. Raises UserError: no host suits a request."""
        self._cluster, self._placement, self._run, self._local = cluster, placement, run, local
        answers = _at_once(cluster.host, sorted(cluster.addresses()))
        self._hosts = {name: host for name, host in answers.items() if isinstance(host, Host)}
        self._silent = [name for name in answers if name not in self._hosts]
        for request in placement.roles:
            self._suiting(request)
        self._used: dict[str, Host] = {}
        self._lost: set[str] = set()
        self._shares: Counter[str] = Counter()
        self._files: set[tuple[str, str]] = set()
        self._events = SpoolWriter(run.spool / "hosts.spool")
        self._offsets: dict[str, Offset] = {}
        """The newest of each host with roles."""
        self._ended = threading.Event()
        self._clocks = threading.Thread(target=self._compare_clocks, name="host-clocks")
        self._clocks.start()
        self._brought: list[str] = []

    @property
    def hosts(self) -> dict[str, Mapping[str, Any]]:
        """The hosts with roles, each with its surroundings."""
        return {name: _surroundings(host) for name, host in self._used.items()}

    @property
    def lead_ns(self) -> int:
        return max((_LEAD_RTTS * 2 * host.offset.uncertainty_ns for host in self._used.values()), default=0)

    @property
    def clock_uncertainty_ns(self) -> int:
        return together_ns(offset.uncertainty_ns for offset in self._offsets.values())

    def launch(self, start: RoleStart, host: str | None = None) -> LaunchedRole:
        """Start a role on `host`, or where the placement wants it. Raises UserError: it cannot."""
        request = RoleRequest(host=host) if host is not None else self._placement.request(start.name)
        if request is None:
            return self._local.launch(start)
        name = min(self._suiting(request), key=lambda one: ((self._shares[one] + 1) / self._cores(one), one))
        used = self._host(name)
        self._shares[name] += 1
        files = {key: (file.sha256, str(file.named)) for key, file in start.files.items()}
        for file in start.files.values():
            self._put(name, file.sha256, file.copy)
        secrets = {request.key: request.resolve() for request in start.requests if request.key not in start.given}
        task = role_task(start, {**secrets, **start.given}, _address(used))
        task["private_files"] = {
            key: {"text": _encrypted(path), "named": str(path)} for key, path in start.private_files.items()
        }
        options = {
            "ahead_ns": used.offset.offset_ns,
            "finishes": self._placement.lost_console == "finish",
            "shared": used.described["clock_domain"] == clock_domain(),
        }
        self._cluster.call(name, "start", self._run.uuid, start.name, task, files, options)
        return HostRole(self._cluster, used, self._run.uuid, start.name, self._lost.add)

    def finish(self) -> None:
        """Compare the clocks once more, and bring the samples unless they stay. Raises UserError: some are left."""
        self._ended.set()
        self._clocks.join()
        faults = _at_once(self._bring if self._placement.samples == "bring" else self._leave, self._used)
        self._events.close()
        left = [
            f"{fault} Samples of its roles are left there: collect them once it is back."
            for fault in faults.values()
            if fault is not None
        ]
        if left:
            raise UserError(" ".join(left))

    def close(self) -> None:
        """The run is stored: let the hosts forget it."""
        self._ended.set()
        self._clocks.join()
        self._events.close()
        for name in self._brought:
            with suppress(UserError):  # it is there yet, and is offered by `labconsole hosts collect`
                self._cluster.call(name, "forget", self._run.uuid)

    def _bring(self, name: str) -> None:
        """Compare the clock of a host, and bring its samples. Raises UserError."""
        self._compare_last(name)
        bring(self._cluster, name, self._run.uuid, collected_folder(self._run.spool, name))
        self._brought.append(name)

    def _leave(self, name: str) -> None:
        """Compare the clock of a host, and let its samples stay there. Raises UserError."""
        self._compare_last(name)
        self._cluster.call(name, "end", self._run.uuid)
        size = self._cluster.call(name, "size", self._run.uuid)
        sentence = f"{format_figure(size, 'B')} of samples stay on {name} until they are collected."
        self._events.event(Event(now_ns(), "worker", Level.INFO, SAMPLES_STAY, sentence, {"host": name, "bytes": size}))

    def _compare_last(self, name: str) -> None:
        if name in self._lost:
            raise UserError(f"The host {name} was lost.")
        self._compare(name, AFTER)

    def _suiting(self, request: RoleRequest) -> list[str]:
        """The hosts that suit a request. Raises UserError: there is none."""
        facts = [host.facts for host in self._hosts.values()]
        suiting = [host.name for host in facts if host.suits(request)]
        if not suiting:
            silent = f" No answer from {', '.join(self._silent)}." if self._silent else ""
            raise UserError(
                f"{fault_of(request, facts)}{silent} Start the agent of one that does, or change the scenario's hosts."
            )
        return suiting

    def _cores(self, name: str) -> int:
        return self._hosts[name].facts.cores

    def _host(self, name: str) -> Host:
        """A host, which is judged when it gets its first role. Raises UserError."""
        if name not in self._used:
            host = self._hosts[name]
            host.require_this_version()
            if (free := host.described["free_bytes"]) < self._run.needed:
                raise UserError(
                    f"The run needs up to {format_figure(self._run.needed, 'B')} on the disk of {name}, and "
                    f"{format_figure(free, 'B')} are free: free space there, or make the run shorter."
                )
            self._used[name] = host
            self._record(name, BEFORE, host.offset)
        return self._used[name]

    def _put(self, name: str, sha256: str, copy: Path) -> None:
        """Bring a file to a host, once. Raises UserError."""
        if (name, sha256) in self._files:
            return
        with copy.open("rb") as file:
            position = 0
            while (data := file.read(PIECE)) or not position:
                self._cluster.call(name, "put", self._run.uuid, sha256, position, data, timeout_s=PIECE_S)
                position += len(data) or 1
        self._files.add((name, sha256))

    def _compare_clocks(self) -> None:
        while not self._ended.wait(_COMPARE_EVERY_S):
            for name in set(self._used) - self._lost:
                with suppress(UserError):  # a host that is lost: its roles say so
                    self._compare(name, DURING, _EXCHANGES_DURING)

    def _compare(self, name: str, phase: str, exchanges: int = 100) -> None:
        wall_offset_ns = self._used[name].described["wall_offset_ns"]
        self._record(name, phase, self._cluster.offset(name, wall_offset_ns, exchanges))

    def _record(self, name: str, phase: str, offset: Offset) -> None:
        for event in comparisons(self._hosts[name], phase, offset, self._offsets.get(name)):
            self._events.event(event)
        self._offsets[name] = offset


class HostRole:
    """`LaunchedRole` of a process on a host."""

    pid = None

    def __init__(self, cluster: Cluster, host: Host, run: str, name: str, on_lost: Callable[[str], None]) -> None:
        self._on_lost = on_lost
        self.host = host.name
        self.clock_domain = str(host.described["clock_domain"])
        self._cluster, self._run, self._name = cluster, run, name
        self._sent = 0
        self._unanswered: dict[int, bytes] = {}
        """The lines that its host has not reported as arrived, by number."""
        self._turn = threading.Lock()
        self._end = threading.Event()
        self._how = ""

    @property
    def ended(self) -> bool:
        return self._end.is_set()

    def send(self, line: bytes) -> None:
        with self._turn:
            self._unanswered[self._sent] = line
            self._sent += 1
            self._ask({self._sent - 1: line})

    def lines(self) -> Iterator[bytes]:
        after = 0
        try:
            while not self._how:
                sent = self._sent
                found: Lines = self._cluster.call(
                    self.host, "lines", self._run, self._name, after, _POLL_S, timeout_s=_POLL_S + ANSWER_S
                )
                after, self._how = found.next, found.ended
                self._send_again(found.expected, sent)
                yield from found.lines
        except UserError:
            self._lose()
        finally:
            self._end.set()

    def _send_again(self, expected: int, sent: int) -> None:
        """Send the lines from `expected` to `sent` again: they were lost with a connection."""
        with self._turn:
            self._unanswered = {number: line for number, line in self._unanswered.items() if number >= expected}
            self._ask({number: line for number, line in self._unanswered.items() if number < sent})

    def _ask(self, lines: Mapping[int, bytes]) -> None:
        with suppress(UserError):  # it is lost, which `wait` reports
            for number, line in lines.items():
                self._cluster.ask(self.host, "send", self._run, self._name, number, line)

    def wait(self) -> str:
        self._end.wait()
        return self._how

    def kill(self) -> None:
        try:
            self._cluster.call(self.host, "kill", self._run, self._name, timeout_s=_KILL_S)
        except UserError:  # a frozen host: the run ends without it
            self._lose()

    def _lose(self) -> None:
        self._on_lost(self.host)
        self._how = f"was lost with its host {self.host}"
        self._end.set()

    def close(self) -> None:
        """Its host releases it."""


def _at_once(work: Callable[[str], T], names: Iterable[str]) -> dict[str, T | UserError]:
    """What some work gives for each host, or the error that it raised: a few hosts at a time."""

    def answered(name: str) -> T | UserError:
        try:
            return work(name)
        except UserError as error:
            return error

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(names, pool.map(answered, names), strict=True))


def _surroundings(host: Host) -> dict[str, Any]:
    left_out = ("running", "finishing", "held", "interfaces", "capabilities")
    return {name: value for name, value in host.described.items() if name not in left_out}


def _address(host: Host) -> str:
    """The IP address of a host, as its agent listens on it."""
    return host.address.partition("://")[2].rpartition(":")[0].strip("[]")


def _encrypted(path: Path) -> str:
    """The content of a file with a private key. Raises UserError: it cannot be read, or is not encrypted."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"The key file {path} cannot be read as PEM: check it, and its name.") from error
    if text.count(PRIVATE_KEY_MARK.decode()) != text.count(_ENCRYPTED):
        raise UserError(f"The key file {path} is not encrypted, and does not leave this computer: encrypt it.")
    return text


def connected(
    placement: Placement, closing: ExitStack, cancelled: Callable[[], bool] = lambda: False
) -> tuple[Cluster, str]:
    """The cluster of a placement until `closing` is closed, and the address where its hosts reach this computer.

    Raises UserError, and CancelledError where local hosts are started and `cancelled`.
    """
    from labconsole.hosts.local_cluster import local_cluster
    from labconsole.hosts.serving import way_to

    scheduler = placement.scheduler
    if placement.local:
        scheduler = closing.enter_context(local_cluster(placement.local, cancelled))
    return closing.enter_context(Cluster.of_console(scheduler)), way_to(scheduler)
