"""How Dask is configured in every process of a cluster: it works in the console's directory, and soon misses a host."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from typing import Any

import dask
from distributed.comm.core import CommClosedError
from distributed.comm.registry import backends
from distributed.comm.tcp import TLSBackend, TLSConnector

from labconsole.paths import hosts_dir

FROZEN_S = 6
"""A host that is not heard of for so long is given up (`worker-ttl`); Dask looks every few seconds."""

_LOGGERS = ("distributed", "distributed.client", "distributed.gc")
"""Those to which Dask gives a level: the others inherit it."""


class _Connector(TLSConnector):
    """Dask's, which connects again where the peer closed a connection before its TLS began.

    Tornado reports that as an unsuitable stream (ValueError). Dask takes it for a fault of the program, and a caller of
    a host would wait in vain for the answer.
    """

    async def connect(self, address: str, deserialize: bool = True, **arguments: Any) -> Any:
        """As in Dask. Raises CommClosedError: the connection was closed."""
        try:
            return await super().connect(address, deserialize, **arguments)  # type: ignore[no-untyped-call]
        except ValueError as error:
            raise CommClosedError(f"The connection to {address} was closed before its TLS began.") from error


class _Backend(TLSBackend):
    _connector_class = _Connector


def dask_settings() -> AbstractContextManager[object]:
    """Apply the settings until the context ends; Dask's own messages are left out: what fails is raised."""
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    backends["tls"] = _Backend()
    return dask.config.set(
        {
            "temporary-directory": str(hosts_dir()),
            "distributed.scheduler.worker-ttl": f"{FROZEN_S} s",
            "distributed.scheduler.http.routes": [],
            "distributed.worker.http.routes": [],
            "distributed.worker.memory.target": False,
            "distributed.worker.memory.spill": False,
            "distributed.worker.memory.pause": False,
            "distributed.worker.memory.terminate": False,
            "distributed.comm.timeouts.connect": "5 s",
            "distributed.worker.profile.enabled": False,
            # Dask measures itself 50 times a second and looks for tasks to move, and a cluster has no dashboard and no
            # tasks: an idle agent took 3 % of a core with its defaults (2026-11-29), and takes 0.6 % so.
            "distributed.admin.tick.interval": "1 s",
            "distributed.admin.system-monitor.interval": "5 s",
            "distributed.scheduler.work-stealing": False,
            "distributed.scheduler.active-memory-manager.start": False,
        }
    )
