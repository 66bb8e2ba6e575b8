"""The queue of requests that wait for a signing thread: first in, first out, with a maximum length."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from labconsole_keypool.messages.wire import Job


class RequestQueue:
    """Jobs in the order of arrival. `maximum` 0 means no limit (section 2.9.9 of the source has 50 and 150)."""

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.dropped = 0
        self._waiting: deque[Job] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def offer(self, job: Job) -> bool:
        """Let `job` wait; False if it found the queue full: it is dropped, and counted."""
        if self.maximum and len(self._waiting) >= self.maximum:
            self.dropped += 1
            return False
        self._waiting.append(job)
        return True

    def take(self) -> Job:
        """The job that waits longest. Raises IndexError if none waits."""
        return self._waiting.popleft()

    def put_back(self, jobs: Iterable[Job]) -> None:
        """Jobs that a lost signer had: to the head, in the order of arrival. They were accepted, so no limit holds."""
        self._waiting.extendleft(sorted(jobs, key=lambda job: job.request, reverse=True))
