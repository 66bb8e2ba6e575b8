"""UDP ports of this computer that are free now."""

from __future__ import annotations

import socket


def free_udp_port() -> int:
    """A port that the system assigned and no process uses; it is free again, and may be assigned again."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
