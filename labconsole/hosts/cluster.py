"""A console's connection to its cluster: which hosts there are, and how their clocks differ from its own."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from distributed import Client

from labconsole import __version__
from labconsole.clock import now_ns, wall_offset_ns
from labconsole.clock_comparison import Exchange, Offset, best_offset, is_settled
from labconsole.errors import UserError
from labconsole.hosts.agent.host_actor import HostActor
from labconsole.hosts.cluster_certificates import console_files
from labconsole.hosts.cluster_tls import ClusterSecurity, Member
from labconsole.hosts.dask_settings import dask_settings
from labconsole.model.placement import HostFacts

_CONNECT_S = 5.0
ANSWER_S = 10.0
_LISTENS_S = 1.0
_SOON_S = 0.25
"""After so long without an answer a console looks whether the agent is still there: Dask would connect for seconds."""
_AGAIN_S = 0.02
T = TypeVar("T")
_GONE = (OSError, TimeoutError, RuntimeError)
"""What Dask raises where a host is lost, does not answer, or has ended with its actor."""
_EXCHANGES, _EXCHANGING_S = 100, 3.0
"""How often a clock is asked at most, and for how long: over a slow link the exchanges are fewer."""


class HostLostError(UserError):
    """A host does not answer, or is not in the cluster."""


@dataclass(frozen=True)
class Host:
    """A host as it answered: `described` as `HostActor.describe` says, `offset` of its clock from this console's."""

    name: str
    address: str
    described: Mapping[str, Any]
    offset: Offset

    @property
    def version(self) -> str:
        """The version of its console."""
        return str(self.described["console"])

    @property
    def facts(self) -> HostFacts:
        """What it is chosen by."""
        seen = self.described
        return HostFacts(
            self.name,
            seen["cores"],
            tuple(seen["tags"]),
            tuple(seen["interfaces"]),
            tuple(seen.get("capabilities", ())),  # an older agent has none
            self.version,
            seen["load_average_before"][0],
        )

    def require_this_version(self) -> None:
        """Raises UserError: it has another version of the console."""
        _require_version(self.name, self.version)


def _require_version(host: str, version: str) -> None:
    if version != __version__:
        raise UserError(
            f"{host} has version {version} of the console and this one has {__version__}: install the same version on "
            "both, and start the agent again."
        )


class _Connection(Client):
    """A client that leaves no thread where it cannot connect."""

    def start(self, **options: Any) -> None:
        """As in Dask, which calls this when it is made."""
        try:
            super().start(**options)  # type: ignore[no-untyped-call]
        except BaseException:
            self._loop_runner.stop()  # type: ignore[no-untyped-call]
            raise


class Cluster(AbstractContextManager["Cluster"]):
    """The connection. Methods raise UserError: a host or the scheduler does not answer."""

    def __init__(self, scheduler: str, member: Member) -> None:
        self._closing = ExitStack()
        self._closing.enter_context(dask_settings())
        try:
            self._client = _Connection(  # type: ignore[no-untyped-call]
                scheduler,
                security=ClusterSecurity(member),
                direct_to_workers=True,
                timeout=_CONNECT_S,
            )
        except (OSError, TimeoutError, ValueError) as error:
            self._closing.close()
            raise UserError(
                f"The scheduler {scheduler} does not answer: start it with `labconsole scheduler`, or check its "
                "address and that it is of this console."
            ) from error
        self._closing.callback(self._client.close)
        self._actors: dict[str, Any] = {}
        self._addresses: dict[str, str] = {}
        self._turn = threading.Lock()

    @classmethod
    def of_console(cls, scheduler: str) -> Cluster:
        """The connection of this console, with its own certificate. Raises UserError."""
        return cls(scheduler, Member.of_console(console_files()))

    def __exit__(self, *error: object) -> None:
        self._closing.close()

    def addresses(self) -> dict[str, str]:
        """The addresses of the hosts that are there now, by their names."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        return {str(worker["name"]): address for address, worker in sorted(workers.items())}

    def described(self, name: str) -> Mapping[str, Any]:
        """What a host of this version describes (`HostActor.describe`). Raises UserError: it has another version."""
        described: Mapping[str, Any] = self.call(name, "describe")
        _require_version(name, str(described["console"]))
        return described

    def host(self, name: str) -> Host:
        """One host, with the offset of its clock as it is now."""
        described = self.call(name, "describe")
        offset = self.offset(name, described["wall_offset_ns"])
        return Host(name, self._addresses[name], described, offset)

    def offset(self, name: str, wall_offset_ns: int, exchanges: int = _EXCHANGES) -> Offset:
        """By how much the clock of a host is ahead of this console's, by `exchanges` at most.

        `wall_offset_ns` is the host's.
        """

        def measured() -> Offset:
            found: Offset = self._client.sync(  # type: ignore[no-untyped-call]
                _measured, self._actor(name), wall_offset_ns, exchanges, callback_timeout=ANSWER_S
            )
            return found

        return self._answered(name, measured)

    def call(self, name: str, method: str, *arguments: Any, timeout_s: float = ANSWER_S) -> Any:
        """What a method of `HostActor` returns on a host. Raises UserError as it does."""
        return self._answered(
            name, lambda: self._result(name, getattr(self._actor(name), method)(*arguments), timeout_s)
        )

    def ask(self, name: str, method: str, *arguments: Any) -> None:
        """Call a method of `HostActor` without waiting for its answer: the call is lost where the connection is."""
        self._answered(name, lambda: getattr(self._actor(name), method)(*arguments))

    def _answered(self, name: str, call: Callable[[], T]) -> T:
        """The answer of a host, which is called again where only its connection was lost. Raises HostLostError."""
        deadline_s = time.monotonic() + ANSWER_S
        while True:
            try:
                return call()
            except UserError:
                raise
            except _GONE as error:
                broken = isinstance(error, OSError) and not isinstance(error, TimeoutError)
                if not broken or time.monotonic() > deadline_s or self._refusal(name):
                    sentence = f"The host {name} does not answer: check that its agent is running."
                    raise HostLostError(sentence) from error
            time.sleep(_AGAIN_S)

    def _result(self, name: str, asked: Any, timeout_s: float) -> Any:
        """What a host answers within this time. Raises TimeoutError, and what `_GONE` names as soon as it is gone."""
        deadline_s = time.monotonic() + timeout_s
        with suppress(TimeoutError):
            return asked.result(timeout=_SOON_S)
        connected = self._client.rpc.occupied.get(self._addresses.get(name, ""))  # its end is noticed
        if not connected and isinstance(refusal := self._refusal(name), ConnectionRefusedError):
            raise refusal  # a host that is slow, or cut off, refuses nothing
        while not asked.done():
            if (left_s := deadline_s - time.monotonic()) <= 0:
                raise TimeoutError
            with suppress(TimeoutError):
                return asked.result(timeout=min(left_s, ANSWER_S))
            if not asked.done() and self._refusal(name):  # it may be silent for longer, and not be cut off
                raise TimeoutError
        return asked.result()

    def _refusal(self, name: str) -> OSError | None:
        """Why the agent of a host accepts no connection; None: it does. Dask would try for seconds."""
        place = urlsplit(self._addresses.get(name, ""))
        try:
            socket.create_connection((place.hostname, place.port), _LISTENS_S).close()
        except OSError as error:
            return error
        return None

    def _actor(self, name: str) -> Any:
        """The console's actor on a host, started when it is first needed."""
        with self._turn:
            if name not in self._actors:
                self._addresses = self.addresses()
                if name not in self._addresses:
                    known = ", ".join(sorted(self._addresses)) or "none"
                    raise HostLostError(f"There is no host {name} in the cluster: its hosts are {known}.")
                # Dask binds an actor to the current client: by default the newest one of this process, which may be of
                # another connection and end before this one.
                with self._client.as_current():
                    future = self._client.submit(
                        HostActor,
                        actor=True,
                        workers=[self._addresses[name]],
                        allow_other_workers=False,
                        key=f"host-{uuid.uuid4().hex}",
                    )
                    self._actors[name] = future.result(timeout=ANSWER_S)
            return self._actors[name]


async def _measured(actor: Any, wall_ns: int, count: int) -> Offset:
    """The offset of a host's clock by the exchange with the shortest round trip, of `count` at most."""
    exchanges: list[Exchange] = []
    until_s = time.monotonic() + _EXCHANGING_S
    # Each exchange takes 3 ms of CPU, half of it on the host, and a run compares the clock of each host several times.
    while len(exchanges) < count and not is_settled(exchanges) and (not exchanges or time.monotonic() < until_s):
        asked_ns = now_ns()
        host_ns = await actor.clock()
        exchanges.append(Exchange(asked_ns, host_ns, host_ns, now_ns()))
    found = best_offset(exchanges, wall_offset_ns(), wall_ns)
    assert found is not None
    return found
