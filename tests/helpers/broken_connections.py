"""Breaks TCP connections of a process that this one has started, as a router does that forgets them."""

from __future__ import annotations

import ctypes
import os
import socket
from contextlib import suppress

import psutil

_PIDFD_GETFD = 438
"""System call of Linux 5.6 on: a copy of another process's file descriptor."""


def break_connections(pid: int, port: int) -> int:
    """Shut down both directions of the process's connections to this port; returns their number."""
    kernel, broken = ctypes.CDLL(None, use_errno=True), 0
    with suppress(psutil.NoSuchProcess, ProcessLookupError):
        process = os.pidfd_open(pid)
        try:
            for connection in psutil.Process(pid).net_connections("tcp"):
                if connection.status != psutil.CONN_ESTABLISHED or connection.raddr.port != port:
                    continue
                copy = kernel.syscall(_PIDFD_GETFD, process, connection.fd, 0)
                if copy < 0:
                    continue  # it was closed meanwhile
                with socket.socket(fileno=copy) as ours, suppress(OSError):
                    ours.shutdown(socket.SHUT_RDWR)
                    broken += 1
        finally:
            os.close(process)
    return broken
