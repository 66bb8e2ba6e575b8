"""The commands that a run gives its roles: the worker needs these alone, not the clients and the broker themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

MEASURE_COMMAND = {"do": "measure"}
"""The command from which the broker's CPU time counts: all clients are connected, and T0 is near."""
FINISH = {"do": "finish"}
"""The command to a sender after its last phase or step."""
COUNT_COMMAND = {"do": "count"}
"""The command to report the number of messages received."""
LATENCY_COMMAND = {"do": "latency"}
"""The command to report p99 of the latencies of the open loop so far, ns; None without any."""
KEY_LISTS = "key lists"
"""The command to a receiver with the lists of message keys of all senders."""


def connect_command(host: str, port: int, shaper: int | None = None) -> dict[str, Any]:
    """The command to a loaded role to connect to the broker, over the port of a shaper where there is one."""
    return {"do": "connect", "host": host, "port": port, "shaper": shaper}


def senders_done(sent: int, reconnects: int = 0) -> dict[str, Any]:
    """The command with which a receiver learns that all senders are done, how many messages they sent to its queue, and
    how often they have lost their connections."""
    return {"do": "all sent", "sent": sent, "reconnects": reconnects}


def key_lists_command(reports: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The command to a receiver with what each sender has reported, in the order of their numbers."""
    return {"do": KEY_LISTS, "lists": [report["message_keys"] for report in reports]}
