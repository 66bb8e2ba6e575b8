"""The scheduler of a cluster, and the agent of a host: each serves until it is stopped."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from typing import Any

from distributed import Scheduler, SchedulerPlugin, Worker

from labconsole.errors import UserError
from labconsole.hosts.cluster_tls import ClusterSecurity, Member
from labconsole.hosts.dask_settings import dask_settings
from labconsole.hosts.host_actor import Capabilities
from labconsole.model.operation import OperationContext

_LOOK_S = 0.2
_JOIN_S = 6.0
_AGAIN_S = 1.0
_OVER = frozenset({"closing", "closed", "failed"})


class _Announcing(SchedulerPlugin):
    """Says which hosts join and leave."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._names: dict[str, str] = {}

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """A host has joined from the address `worker`."""
        self._names[worker] = str(scheduler.workers[worker].name)
        self._say(f"{self._names[worker]} has joined; {self._hosts()}.")

    def remove_worker(self, scheduler: Scheduler, worker: str, **more: Any) -> None:
        """A host has left, or is lost."""
        self._say(f"{self._names.pop(worker, worker)} is gone; {self._hosts()}.")

    def _hosts(self) -> str:
        count = len(self._names)
        return "1 host is there" if count == 1 else f"{count} hosts are there"


def serve_scheduler(member: Member, host: str, port: int, context: OperationContext) -> None:
    """Serve as the scheduler on this address. Raises UserError: it cannot listen."""

    async def serve() -> None:
        try:
            scheduler = await Scheduler(host=host, port=port, security=ClusterSecurity(member), dashboard=False)
        except OSError as error:
            raise UserError(f"The scheduler cannot listen on {host}:{port}: {error.strerror or error}.") from error
        scheduler.add_plugin(_Announcing(context.say))
        context.say(f"The scheduler listens on {scheduler.address}.")
        while not context.stop_requested:
            await asyncio.sleep(_LOOK_S)
        await scheduler.close()

    with dask_settings():
        asyncio.run(serve())


class Agent(Worker):
    """A worker that runs the actors of consoles, and no tasks."""

    capabilities: Capabilities


def serve_agent(
    member: Member, scheduler: str, host: str | None, tags: tuple[str, ...], context: OperationContext
) -> None:
    """Join a cluster as the host that `member` names, and again where its scheduler was lost.

    `host` is the address to listen on; None: that of the way to the scheduler. Raises UserError: it cannot join.
    """

    async def joined(directory: str) -> Agent:
        agent = Agent(
            scheduler,
            name=member.name,
            nthreads=1,
            host=host,
            security=ClusterSecurity(member),
            dashboard=False,
            local_directory=directory,
        )
        agent.capabilities = Capabilities(tags, directory)
        try:
            async with asyncio.timeout(_JOIN_S):
                await agent
        except (OSError, TimeoutError, RuntimeError, ValueError) as error:
            await agent.close(reason="it could not join")
            raise UserError(_not_joined(member.name, scheduler, error)) from error
        context.say(f"{member.name} has joined {scheduler}, and listens on {agent.address}.")
        return agent

    async def serve(directory: str) -> None:
        agent = await joined(directory)
        while not context.stop_requested:
            if agent.status.name in _OVER:
                context.say(f"The scheduler {scheduler} is gone: {member.name} waits until it is back.")
                agent = await joined_again(directory) or agent
            await asyncio.sleep(_LOOK_S)
        await agent.close(reason="it was stopped")

    async def joined_again(directory: str) -> Agent | None:
        while not context.stop_requested:
            try:
                return await joined(directory)
            except UserError:
                await asyncio.sleep(_AGAIN_S)
        return None

    with dask_settings(), tempfile.TemporaryDirectory(prefix="labconsole-agent-") as directory:
        asyncio.run(serve(directory))


def _not_joined(name: str, scheduler: str, error: Exception) -> str:
    if "name taken" in f"{error} {error.__cause__}":
        return f"{scheduler} has a host {name} already: stop its agent, or enrol this host under another name."
    return (
        f"{name} cannot join the cluster of {scheduler}: check that its scheduler is running, and that this host's "
        "enrolment is of the same console."
    )
