"""The dispatch of requests to signers: in the order of arrival, to the thread that has been idle longest."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from labconsole_keypool.messages.service_frames import Job, WireError


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


S = TypeVar("S", bound=Hashable)


class Dispatch(Generic[S]):
    """The queue, the idle threads of the signers, and the jobs that each of them has. Knows no connections."""

    def __init__(self, queue: RequestQueue) -> None:
        self.queue = queue
        self._idle: deque[S] = deque()
        self._jobs: dict[S, dict[int, Job]] = {}

    @property
    def outstanding(self) -> int:
        """Jobs that signers have."""
        return sum(map(len, self._jobs.values()))

    @property
    def threads(self) -> int:
        """Threads of all signers, idle or at work."""
        return len(self._idle) + self.outstanding

    def join(self, signer: S) -> None:
        """A signer is there; it has no idle thread until `want`."""
        self._jobs[signer] = {}

    def want(self, signer: S, jobs: int) -> None:
        """So many threads of `signer` are idle now."""
        self._idle.extend([signer] * jobs)

    def next(self) -> tuple[S, Job] | None:
        """The next job and its signer; None if no job waits or no thread is idle."""
        if not self._idle or not len(self.queue):
            return None
        signer, job = self._idle.popleft(), self.queue.take()
        self._jobs[signer][job.request] = job
        return signer, job

    def done(self, signer: S, request: int) -> Job:
        """The job that `signer` answered. Raises WireError: it had none of that number."""
        if request not in self._jobs[signer]:
            raise WireError(f"An answer to request {request} came from a signer that did not have it.")
        return self._jobs[signer].pop(request)

    def leave(self, signer: S) -> list[Job]:
        """A signer is gone: its jobs are at the head of the queue again. Returns them."""
        jobs = list(self._jobs.pop(signer).values())
        self._idle = deque(other for other in self._idle if other != signer)
        self.queue.put_back(jobs)
        return jobs
