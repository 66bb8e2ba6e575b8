"""The scheduler of a cluster, and the agent of a host: each serves until it is stopped."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Any
from urllib.parse import urlsplit

from distributed import Scheduler, SchedulerPlugin, Worker
from distributed.http.routing import RoutingApplication
from tornado.httpserver import HTTPServer

from labconsole.errors import UserError
from labconsole.hosts.agent.hosted_runs import HostedRuns
from labconsole.hosts.cluster_tls import ClusterSecurity, Member
from labconsole.hosts.dask_settings import dask_settings
from labconsole.hosts.samples.collected import recorded_folder
from labconsole.model.operation import OperationContext

_LOOK_S = 0.2
_JOIN_S = 6.0
_AGAIN_S = 1.0
_OVER = frozenset({"closing", "closed", "failed"})
_REFUSALS = (OSError, TimeoutError, RuntimeError, ValueError)
"""What Dask raises where a port, an address or a name is not free, or the other end refuses."""


class _WithoutWebServer:
    """Keeps a node of Dask from opening its web server, which it does also without a dashboard."""

    http_application: RoutingApplication
    http_server: HTTPServer

    def start_http_server(self, *_arguments: object, **_options: object) -> None:
        """As in Dask, but it does not listen."""
        self.http_application = RoutingApplication([])  # type: ignore[no-untyped-call]
        self.http_server = HTTPServer(self.http_application)


class _Scheduler(_WithoutWebServer, Scheduler):
    """The scheduler."""


class Agent(_WithoutWebServer, Worker):
    """A worker that runs the actors of consoles, and no tasks."""

    tags: tuple[str, ...]
    runs: HostedRuns


class _Announcing(SchedulerPlugin):
    """Says which hosts join and leave."""

    def __init__(self, context: OperationContext) -> None:
        self._context = context
        self._names: dict[str, str] = {}

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """A host has joined from the address `worker`."""
        self._names[worker] = str(scheduler.workers[worker].name)
        self._context.say(f"{self._names[worker]} has joined; {self._hosts()}.")

    def remove_worker(self, scheduler: Scheduler, worker: str, **more: Any) -> None:
        """A host has left, or is lost."""
        self._context.say(f"{self._names.pop(worker, worker)} is gone; {self._hosts()}.")

    def _hosts(self) -> str:
        count = len(self._names)
        return "1 host is there" if count == 1 else f"{count} hosts are there"


def serve_scheduler(member: Member, host: str, port: int, context: OperationContext) -> None:
    """Serve as the scheduler on this address. Raises UserError: it cannot listen."""

    async def serve() -> None:
        try:
            scheduler = await _Scheduler(host=host, port=port, security=ClusterSecurity(member), dashboard=False)
        except _REFUSALS as error:
            raise UserError(f"The scheduler cannot listen on {host}:{port}: {_reason(error)}.") from error
        scheduler.add_plugin(_Announcing(context))
        context.say(f"The scheduler listens on {scheduler.address}.")
        while not context.stop_requested:
            await asyncio.sleep(_LOOK_S)
        await scheduler.close()

    with dask_settings():
        asyncio.run(serve())


def serve_agent(
    member: Member, scheduler: str, host: str | None, tags: tuple[str, ...], context: OperationContext
) -> None:
    """Join a cluster as the host that `member` names, and again where its scheduler was lost.

    `host` is the address to listen on; None: that of the way to the scheduler, which may be another one each time that
    it joins. Raises UserError: it cannot join.
    """
    security = ClusterSecurity(member)
    runs = HostedRuns(recorded_folder(member.name), member.name)

    async def joined() -> Agent | None:
        """The agent once it has joined; None: it was stopped before."""
        agent: Agent | None = None
        listens_on = host or way_to(scheduler)
        try:
            agent = Agent(scheduler, name=member.name, nthreads=1, host=listens_on, security=security, dashboard=False)
            agent.tags, agent.runs = tags, runs
            await _unless_stopped(agent, context)
            if host is None and way_to(scheduler) != listens_on:
                raise OSError(errno.EADDRNOTAVAIL, "this computer has another address now")
        except (*_REFUSALS, UserError) as error:
            if agent is not None:
                await agent.close(reason="it could not join")
            raise UserError(_not_joined(member.name, scheduler, listens_on, error)) from error
        if agent.status.name != "running":
            await agent.close(reason="it was stopped")
            return None
        context.say(f"{member.name} has joined {scheduler}, and listens on {agent.address}.")
        return agent

    async def serve() -> None:
        agent = await joined()
        while agent is not None and not context.stop_requested:
            if agent.status.name in _OVER:
                agent = await joined_again()
            runs.look()
            await asyncio.sleep(_LOOK_S)
        await runs.close()
        if agent is not None:
            await agent.close(reason="it was stopped")

    async def joined_again() -> Agent | None:
        said = f"{member.name} has lost {scheduler}, and waits until it can join again."
        context.say(said)
        while not context.stop_requested:
            try:
                return await joined()
            except UserError as error:
                if str(error) != said:  # each reason once
                    said = str(error)
                    context.say(said)
                runs.look()
                await asyncio.sleep(_AGAIN_S)
        return None

    with dask_settings():
        asyncio.run(serve())


async def _unless_stopped(agent: Agent, context: OperationContext) -> None:
    """Wait until the agent runs or the operator stops it. Raises TimeoutError, and as Dask."""
    joining = asyncio.ensure_future(_started(agent))
    try:
        async with asyncio.timeout(_JOIN_S):
            while not (joining.done() or context.stop_requested):
                await asyncio.wait({joining}, timeout=_LOOK_S)
    finally:
        if not joining.done():
            joining.cancel()
    if joining.done() and not joining.cancelled():
        joining.result()


async def _started(agent: Agent) -> None:
    await agent


def way_to(scheduler: str) -> str:
    """The address of this computer on the way to the scheduler. Raises UserError: there is none."""
    address = urlsplit(scheduler)
    try:
        (family, kind, *_, place), *_others = socket.getaddrinfo(address.hostname, address.port, type=socket.SOCK_DGRAM)
        with socket.socket(family, kind) as probe:
            probe.connect(place)  # sends nothing
            return str(probe.getsockname()[0])
    except OSError as error:
        raise UserError(
            f"There is no way to the scheduler {scheduler} ({_reason(error)}): check its address."
        ) from error


def _not_joined(name: str, scheduler: str, listens_on: str, error: BaseException) -> str:
    first = _first(error)
    if "name taken" in f"{error} {first}":
        return f"{scheduler} has a host {name} already: stop its agent, or enrol this host under another name."
    if isinstance(first, OSError) and not isinstance(first, ConnectionError | TimeoutError) and first.errno:
        return f"{name} cannot listen on {listens_on} ({_reason(error)}): give an address of this computer."
    return (
        f"{name} cannot join the cluster of {scheduler}: check the network, that the scheduler is running, and that "
        "this host's enrolment is of the same console."
    )


def _first(error: BaseException) -> BaseException:
    """The cause that Dask's own error has wrapped."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _reason(error: BaseException) -> str:
    first = _first(error)
    return (first.strerror or str(first)) if isinstance(first, OSError) else str(first)
