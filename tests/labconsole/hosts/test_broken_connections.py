"""A console's connections to a host break in mid-run: no line is lost, and nothing is started twice."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import psutil
import pytest
from distributed.comm.core import CommClosedError
from distributed.comm.registry import get_backend

from labconsole.hosts.cluster import Cluster
from labconsole.hosts.dask_settings import dask_settings
from labconsole.store.records import RunStatus
from tests.helpers.broken_connections import break_connections
from tests.helpers.forked_programs import runs
from tests.helpers.practice import STATIONS, Bench
from tests.labconsole.hosts.cluster_processes import ClusterProcesses
from tests.labconsole.hosts.host_runs import submit

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="connections are broken by a call of Linux")
BREAKS = 60
BREAK_EVERY_S = 0.15


@pytest.fixture
def bench(bench_of_processes: Bench) -> Bench:
    """A queue whose workers are processes: their connections are broken from outside."""
    return bench_of_processes


class Breaking:
    """Breaks the connections of the worker to a host again and again, on a thread."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.broken = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def close(self) -> None:
        """Break no more."""
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._over.wait(BREAK_EVERY_S):
            with suppress(psutil.Error):
                for child in psutil.Process().children():
                    if runs(child, "labconsole.engine.worker"):
                        self.broken += break_connections(child.pid, self._port)


@contextmanager
def breaking(running: ClusterProcesses) -> Iterator[Breaking]:
    """Connections of runs to alpha break in the block."""
    with Cluster(running.address, running.member()) as console:
        port = urlsplit(console.addresses()["alpha"]).port
    assert port is not None
    found = Breaking(port)
    try:
        yield found
    finally:
        found.close()


def test_a_run_whose_connections_break_all_the_time_loses_no_sample_and_starts_each_role_once(
    bench: Bench, running: ClusterProcesses
) -> None:
    with breaking(running) as breaks:
        run_id = submit(bench, running, [{"role": "*", "host": "alpha"}], roles=3, count=4000, rate=1000)
        bench.pump_until_idle()
    detail = bench.detail(run_id)
    assert detail.row.status is RunStatus.FINISHED, detail.row.reason
    assert breaks.broken > 20
    assert [len(bench.numbers(run_id, f"counter-{number}")) for number in range(3)] == [4000] * 3
    started = sorted(event.source for event in detail.events if event.name == "process" and event.source != "worker")
    assert started == ["counter-0", "counter-1", "counter-2"]


def test_commands_arrive_once_and_in_order_over_connections_that_break(bench: Bench, running: ClusterProcesses) -> None:
    run_id = submit(bench, running, [{"role": "*", "host": "alpha"}], kind=STATIONS, stations=1, duration=600)
    bench.pump_until(lambda: any(frame.begin_ns for _, frame in bench.listener.frames))
    rates: list[float] = []
    with breaking(running) as breaks:
        while breaks.broken < BREAKS:
            rates.append(100.0 + len(rates) / 10)
            recorded = len(bench.listener.events)
            bench.queue.command(run_id, "set_rate", {"rate": rates[-1]}, role="station-0")
            bench.pump_until(lambda recorded=recorded: len(bench.listener.events) > recorded)  # type: ignore[misc]
    bench.pump_until(lambda: last_rate(bench) == rates[-1])
    bench.queue.command(run_id, "stop", {})
    bench.pump_until_idle()
    detail = bench.detail(run_id)
    assert detail.row.status is RunStatus.FINISHED, detail.row.reason
    changed = [event.data["command"]["parameters"]["rate"] for event in detail.events if event.name == "rate changed"]
    assert changed == rates


def test_a_connection_that_is_closed_before_its_tls_begins_was_closed() -> None:
    async def connect(port: int) -> None:
        connecting = asyncio.create_task(
            get_backend("tls")
            .get_connector()
            .connect(f"127.0.0.1:{port}", ssl_context=ssl.create_default_context(), require_encryption=True)
        )
        while not closed.done():  # Tornado gets no turn between the start and the end of the connection
            await asyncio.sleep(0)
            time.sleep(0.05)
        await connecting

    def accept_and_close(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        connection.close()

    with (
        dask_settings(),
        socket.create_server(("127.0.0.1", 0)) as listening,
        ThreadPoolExecutor() as threads,
        pytest.raises(CommClosedError, match="closed before its TLS began"),
    ):
        closed = threads.submit(accept_and_close, listening)
        asyncio.run(connect(listening.getsockname()[1]))


def last_rate(bench: Bench) -> float:
    """The rate that the station has reported last."""
    return [frame.by_role.gauges["rate"].get("station-0", 0.0) for _, frame in bench.listener.frames][-1]
