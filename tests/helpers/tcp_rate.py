"""Two programs that measure what a TCP connection carries, for the ends of a link that are in other namespaces."""

from __future__ import annotations

import sys

_RECEIVER = """
import socket, sys, time
with socket.create_server((sys.argv[1], 0)) as listener:
    print("Ready", listener.getsockname()[1], flush=True)
    sock, _ = listener.accept()
with sock:
    begun = first = last = octets = 0
    while chunk := sock.recv(65536):
        last = time.perf_counter()
        begun = begun or last
        if first:
            octets += len(chunk)
        elif last - begun > 0.5:
            first = last
print(octets * 8 * 1500 / 1448 / (last - first) / 1e6)
"""
_SENDER = """
import socket, sys, time
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as sock:
    end = time.monotonic() + float(sys.argv[3])
    while time.monotonic() < end:
        sock.sendall(bytes(1448))
"""


def receiver_program(host: str) -> tuple[str, ...]:
    """Prints `Ready PORT`; then, of one connection after its first 0.5 s, the rate in Mbit/s of IP packets."""
    return sys.executable, "-c", _RECEIVER, host


def sender_program(host: str, port: int, seconds: float) -> tuple[str, ...]:
    """Sends as fast as it can for so long."""
    return sys.executable, "-c", _SENDER, host, str(port), str(seconds)
