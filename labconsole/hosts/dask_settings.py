"""How Dask is configured in every process of a cluster: it works in the console's directory, and soon misses a host."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager

import dask

from labconsole.paths import hosts_dir

FROZEN_S = 6
"""A host that is not heard of for so long is given up (`worker-ttl`); Dask looks every few seconds."""

_LOGGERS = ("distributed", "distributed.client", "distributed.gc")
"""Those to which Dask gives a level: the others inherit it."""


def dask_settings() -> AbstractContextManager[object]:
    """Apply the settings until the context ends; Dask's own messages are left out: what fails is raised."""
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
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
        }
    )
