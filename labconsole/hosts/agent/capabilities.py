"""What roles can use on a host: its agent reports it, and the window knows it of hosts on this computer."""

from __future__ import annotations

import socket
import sys
from contextlib import suppress

from labconsole.errors import UserError
from labconsole.security.token.named_tokens import load_configurations


def capabilities() -> list[str]:
    """The transports and tokens that roles can use on this host; a request may name one as its tag.

    `udp`, `ethernet` for raw frames (Linux, with the right CAP_NET_RAW), and `token:NAME` for each configured token.
    """
    found = ["udp", "ethernet"] if _sends_raw_frames() else ["udp"]
    with suppress(UserError):  # a faulty file: the role that needs one of its tokens says so
        found += [f"token:{name}" for name in sorted(load_configurations())]
    return found


def _sends_raw_frames() -> bool:
    if sys.platform != "linux":
        return False
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except OSError:
        return False
    return True
