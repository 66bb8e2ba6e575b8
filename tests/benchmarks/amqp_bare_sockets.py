"""Latency of an open loop through a broker without the console: finished frames on a bare socket, read as they come.

What is left is the broker's, the kernel's and TLS's: no client can be below that. `amqp_peers.py` prints it next to the
console's own open loop.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from multiprocessing.connection import Connection as Pipe

import numpy as np
from numpy.typing import NDArray

from labconsole.clock import now_ns
from labconsole.processes import wait_exactly
from labconsole_amqp.link.connection import Endpoint, connect
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.wire.template import plain_template

_LEAD_S = 0.2
_QUIET_S = 2.0
"""How long nothing comes once all has come."""
_READ_SIZE = 65_536


def latencies_ms(endpoint: Endpoint, queue: str, body: bytes, rate: float, count: int) -> NDArray[np.float64]:
    """Milliseconds from the time at which each of `count` messages was due until its frame had been read.

    Messages are pre-settled, so that nothing else is on either connection.
    """
    context = multiprocessing.get_context("fork")  # certificates cannot be handed to another program
    ours, theirs = context.Pipe()
    reader = context.Process(target=_read, args=(endpoint, queue, count, theirs))
    reader.start()
    ours.recv()
    wait_exactly()
    template = plain_template(body, None)
    with connect(endpoint) as connection:
        link = Sender(connection, queue, settled=True)
        link.pump(_LEAD_S)
        due_ns = now_ns() + int(_LEAD_S * 1e9) + (np.arange(count) * (1e9 / rate)).astype(np.int64)
        for due in due_ns.tolist():
            while (left_s := (due - now_ns()) / 1e9) > 0:
                time.sleep(left_s)
            link.send(template, 1)
            link.pump(0)  # for credit
        read: list[tuple[int, int]] = ours.recv()
    reader.join()
    size = statistics.mode(octets for _, octets in read)
    read_ns = np.repeat([when for when, _ in read], [round(octets / size) for _, octets in read])
    if len(read_ns) != count:
        raise RuntimeError(f"{len(read_ns)} of {count} messages were read")
    return np.asarray((read_ns - due_ns) / 1e6)


def _read(endpoint: Endpoint, queue: str, count: int, pipe: Pipe) -> None:
    """Send, once nothing more comes, when something was read, and how many octets."""
    with connect(endpoint) as connection:
        Receiver(connection, queue, window=2 * count, settled=True)
        pipe.send("ready")
        sock, read = connection.engine.sock, list[tuple[int, int]]()
        sock.settimeout(_QUIET_S + 2 * _LEAD_S)
        try:
            while octets := sock.recv(_READ_SIZE):
                read.append((now_ns(), len(octets)))
        except TimeoutError:
            pipe.send(read)
