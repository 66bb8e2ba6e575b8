"""How sending stations are spread over processes, and cores over receiver and senders."""

from __future__ import annotations

from collections.abc import Collection, Sequence

PACKETS_A_PROCESS = 3000
"""CAMs a second that one process sends, or verifies, without being late: a signed one takes some 70 us."""


def spread(senders: int, processes: int, most_packets: float, cores: int) -> list[Sequence[int]]:
    """The numbers of the stations, from 1 on, of each process: about as many in each.

    `processes` 0: as many as the packets a second need that all of them send and verify, at most one for each of
    `cores`, the cores that they have.
    """
    if not processes:
        processes = max(1, min(cores, -(-round(most_packets) // PACKETS_A_PROCESS)))
    processes = min(processes, senders)
    share, more = divmod(senders, processes)
    groups, first = list[Sequence[int]](), 1
    for number in range(processes):
        count = share + (number < more)
        groups.append(range(first, first + count))
        first += count
    return groups


def divided_cores(cores: Collection[int]) -> tuple[frozenset[int], frozenset[int]]:
    """The core of a single receiver, and those of senders; both empty where there is only one core, or none is known.

    Without that a receiver is often woken on the core of the sender, and waits until that has nothing to send.
    """
    last = max(cores, default=0)
    others = frozenset(cores) - {last}
    return (frozenset({last}), others) if others else (frozenset(), frozenset())
