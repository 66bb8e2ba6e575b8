"""How sending stations are spread over processes, and the load that a scenario is."""

from __future__ import annotations

import os
from collections.abc import Sequence

PACKETS_A_PROCESS = 3000
"""CAMs a second that one process sends, or verifies, without being late: a signed one takes some 70 us."""


def spread(senders: int, processes: int, most_packets: float) -> list[Sequence[int]]:
    """The numbers of the stations, from 1 on, of each process: about as many in each.

    `processes` 0: as many as the packets a second need that all of them send and verify, at most one for each core.
    """
    if not processes:
        processes = min(os.cpu_count() or 1, -(-round(most_packets) // PACKETS_A_PROCESS)) or 1
    processes = min(processes, senders)
    share, more = divmod(senders, processes)
    groups, first = list[Sequence[int]](), 1
    for number in range(processes):
        count = share + (number < more)
        groups.append(range(first, first + count))
        first += count
    return groups
