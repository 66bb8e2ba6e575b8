"""Measure how a cluster of hosts grows: 1, 5, 10 and 20 agents on this computer, over TLS on loopback.

Run it with `python tests/benchmarks/hosts_growth.py`. For each number of agents it prints the time until all have
joined, until a role is ready on each, the delay of a live message from its role to the console, and the time to bring a
million samples from one host. All processes share this computer's cores: on a testbed each host has its own.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from labconsole.clock import now_ns
from labconsole.engine.launcher import LaunchedRole, LocalLauncher, RoleStart
from labconsole.engine.protocol import decode_line, encode_line
from labconsole.engine.provenance import provenance
from labconsole.hosts.host_launcher import HostLauncher, HostRun, connected
from labconsole.hosts.samples.collected import collected_folder
from labconsole.model.placement import Placement
from labconsole.paths import HOME_VARIABLE

AGENTS = (1, 5, 10, 20)
TICKS = 50
ROWS = 1_000_000


def main() -> None:
    """Print the figures of each number of agents."""
    said = provenance(0, 0)
    print(f"{said['cpu']}, {said['cores']} cores, {said['os']}, Python {said['python']}, {said['load_average_before']}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ[HOME_VARIABLE] = folder
        os.environ["PYTHONPATH"] = os.pathsep.join((str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")))
        for agents in AGENTS:
            print(_figures(agents, Path(folder)), flush=True)


def _figures(agents: int, folder: Path) -> str:
    placement = Placement.model_validate({"local": agents, "roles": [{"role": "*"}]})
    with ExitStack() as closing:
        begun = time.perf_counter()
        cluster, _ = connected(placement, closing)
        joined_s = time.perf_counter() - begun
        run = HostRun(str(uuid.uuid4()), folder / f"spool-{agents}", 0)
        run.spool.mkdir()
        launcher = HostLauncher(cluster, placement, run, LocalLauncher())
        closing.callback(launcher.close)
        begun = time.perf_counter()
        roles = [
            launcher.launch(_start(f"ticking-{number}", "TickingRole", run, ticks=TICKS)) for number in range(agents)
        ]
        with _delays(roles) as found:
            while found.ready < agents:
                time.sleep(0.01)
            ready_s = time.perf_counter() - begun
            at_ns = now_ns() + 200_000_000
            for role in roles:
                role.send(encode_line({"t": "begin", "at_ns": at_ns}))
        recorder = launcher.launch(_start("recording", "RecordingRole", run, rows=ROWS))
        recorder.send(encode_line({"t": "begin", "at_ns": now_ns()}))
        list(recorder.lines())
        begun = time.perf_counter()
        launcher.finish()
        brought_s = time.perf_counter() - begun
        size = sum(path.stat().st_size for path in collected_folder(run.spool, "local-1").parent.rglob("*.spool"))
    delays = sorted(found.ms)
    p99 = delays[int(len(delays) * 0.99)]
    return (
        f"{agents} agents: joined after {joined_s:.1f} s; a role ready on each after {ready_s:.1f} s more; live delay "
        f"p50 {statistics.median(delays):.1f} ms, p99 {p99:.1f} ms of {len(delays)}; a million samples "
        f"({size / 1e6:.0f} MB) brought in {brought_s:.2f} s"
    )


def _start(name: str, target: str, run: HostRun, **settings: Any) -> RoleStart:
    return RoleStart(name, f"growth_roles:{target}", settings, (), {}, {}, {}, run.spool / f"{name}.spool", 10)


class _Found:
    """What the roles said."""

    def __init__(self) -> None:
        self.ready = 0
        self.ms: list[float] = []


@contextmanager
def _delays(roles: list[LaunchedRole]) -> Iterator[_Found]:
    """Read all roles until their end; the block sends them what they wait for."""
    found = _Found()

    def read(role: LaunchedRole) -> None:
        for line in role.lines():
            message = decode_line(line)
            if message is not None and message["t"] == "ready":
                found.ready += 1
            elif message is not None and message["t"] == "report":
                found.ms.append((now_ns() - message["data"]["at_ns"]) / 1e6)

    threads = [threading.Thread(target=read, args=(role,)) for role in roles]
    for thread in threads:
        thread.start()
    yield found
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
