"""The signing service as a role: requests arrive, wait in its queue, and go to signers that connect to it.

One loop does it all: it wakes at each arrival, at each frame of a signer, and every 50 ms. It has no key and
no token; of a lost signer or generator only its current work is lost.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.model.role import Role, RoleContext
from labconsole.model.trial import Level
from labconsole_keypool.choices import RequestContent
from labconsole_keypool.messages import sign_request
from labconsole_keypool.messages.service_frames import Done, Frame, Job, JobKind, Member, Want, WireError
from labconsole_keypool.messages.signature_algorithms import default_for
from labconsole_keypool.series import END_EVENT
from labconsole_keypool.service.arrivals import ARRIVALS_FILE, arrivals_ns
from labconsole_keypool.service.connections import ADMIT, START, ClientServer, Peer
from labconsole_keypool.service.request_dispatch import Dispatch, RequestQueue
from labconsole_keypool.service.request_folder import RequestFolder
from labconsole_keypool.service.request_log import RequestLog
from labconsole_keypool.service.service_parameters import ServiceParameters

_TICK_S = 0.05
_STALL_S = 120.0
_DIGEST_BYTES = 32


class ServiceRole(Role):
    """Settings: `parameters` as JSON, and the run's `seed`. Begun at once, it waits for its clients and for T0."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        parameters = ServiceParameters.model_validate(context.settings["parameters"])
        self._parameters = parameters
        self._random = random.Random(context.settings["seed"])
        self._due_ns: list[int] = []
        self._begin_ns: int | None = None
        self._arrived = 0
        self._moved_ns = 0
        self._tick_ns = 0
        self._clients = ClientServer(self)
        self._dispatch: Dispatch[Peer] = Dispatch(RequestQueue(parameters.queue_limit))
        self._log = RequestLog(context, parameters.origin, parameters.speed)
        self._folder: RequestFolder | None = None
        self._waiting = 0
        self._first: tuple[bytes, bytes] = (b"", b"")

    def prepare(self) -> dict[str, Any]:
        """Work out when requests arrive, and listen. Raises UserError: a CSV file or folder that cannot be read."""
        parameters = self._parameters
        if parameters.content is RequestContent.FOLDER:
            self._folder = RequestFolder(Path(parameters.request_folder).expanduser())
        due_ns = arrivals_ns(
            parameters.arrivals,
            requests=len(self._folder) if self._folder else parameters.requests,
            rate=parameters.rate,
            time_scale=parameters.time_scale,
            seed=self.context.settings["seed"],
            csv=self.context.file(ARRIVALS_FILE),
            tail_requests=parameters.tail_requests,
            tail_rate=parameters.tail_rate,
        )
        if self._folder is not None:
            due_ns = due_ns[: len(self._folder)]
        self._due_ns = (due_ns / parameters.speed).astype(int).tolist()
        return {"port": self._clients.listen(), "requests": len(self._due_ns)}

    def run(self) -> dict[str, Any]:
        """Serve until every request is answered or dropped. Raises UserError: no signer answers any more."""
        self._moved_ns = now_ns()
        while not (self._at_end() or self.context.stop_requested):
            self._handle_commands()
            self._clients.poll(self._poll_timeout_s())
            now = now_ns()
            self._accept_due_requests(now)
            self._assign(now)
            self._notify_busy()
            if now >= self._tick_ns:
                self._tick_ns = now + int(_TICK_S * 1e9)
                self._log.flush()
                self.context.tick()
                self._raise_stall(now)
        self._clients.dismiss()
        self._log.flush()
        if self._folder is not None:
            self._folder.close()
        return self._outcome()

    def close(self) -> None:
        """Close all connections, and write the answers that wait."""
        self._clients.close()
        if self._folder is not None:
            self._folder.close()

    @property
    def threads(self) -> int:
        """Threads of all signers that have connected."""
        return self._dispatch.threads

    def _at_end(self) -> bool:
        return self._arrived == len(self._due_ns) and not (len(self._dispatch.queue) or self._dispatch.outstanding)

    def _poll_timeout_s(self) -> float:
        if self._begin_ns is None or self._arrived == len(self._due_ns):
            return _TICK_S
        due_ns = self._begin_ns + self._due_ns[self._arrived]
        return min(_TICK_S, max(0, due_ns - now_ns()) / 1e9)

    def _handle_commands(self) -> None:
        while (command := self.context.take_command()) is not None:
            if command["do"] == ADMIT:
                self._clients.token = bytes.fromhex(command["token"])
            elif command["do"] == START:
                self._begin_ns = command["begin_ns"]

    def _accept_due_requests(self, now: int) -> None:
        """Accept all requests that are due, each with the time at which it was due, however late this loop is."""
        while self._begin_ns is not None and self._arrived < len(self._due_ns):
            due_ns = self._begin_ns + self._due_ns[self._arrived]
            if due_ns > now:
                return
            self._arrived += 1
            self._moved_ns = now
            job = self._job(self._arrived, due_ns)
            self._log.arrived(due_ns)
            if self._dispatch.queue.offer(job):
                self._assign(due_ns)
            else:
                self._log.dropped(job)

    def _job(self, request: int, due_ns: int) -> Job:
        kind = self._parameters.key_kind
        if self._parameters.content is RequestContent.DIGESTS:
            return Job(request, due_ns, JobKind.DIGEST, kind, self._random.randbytes(_DIGEST_BYTES))
        sample = self._folder.read(request) if self._folder else None
        body = sign_request.sample(request, algorithm=default_for(kind)) if sample is None else sample
        return Job(request, due_ns, JobKind.SIGN_REQUEST, kind, body)

    def _assign(self, at_ns: int) -> None:
        """Give waiting requests to idle threads, and record how many wait from `at_ns` on."""
        while (given := self._dispatch.next()) is not None:
            peer, job = given
            self._log.taken(1)
            self._clients.send(peer, job)
        waiting = len(self._dispatch.queue)
        if waiting != self._waiting:
            self._waiting = waiting
            self._log.queue(at_ns, waiting)

    def _notify_busy(self) -> None:
        """Generators pause while requests wait, signers' refills while more wait than there are threads."""
        waiting = len(self._dispatch.queue)
        for peer in self._clients.members(Member.GENERATOR):
            self._clients.notify_busy(peer, busy=waiting > 0 or self._begin_ns is None)
        for peer in self._clients.members(Member.SIGNER):
            self._clients.notify_busy(peer, busy=waiting > self.threads)

    def client_joined(self, peer: Peer) -> None:
        """`ClientEvents`: a signer or generator has connected."""
        if peer.member is Member.SIGNER:
            self._dispatch.join(peer)

    def frame_received(self, peer: Peer, frame: Frame) -> None:
        """`ClientEvents`: idle threads and answers of signers. Raises WireError: anything else."""
        match frame:
            case Want() if peer.member is Member.SIGNER:
                self._dispatch.want(peer, frame.jobs)
            case Done() if peer.member is Member.SIGNER:
                self._answered(self._dispatch.done(peer, frame.request), frame)
            case _:
                raise WireError(f"A {type(frame).__name__} of {peer.name} has no place here.")

    def client_left(self, peer: Peer) -> None:
        """`ClientEvents`: the requests of a lost signer go back to the head of the queue."""
        if peer.member is not Member.SIGNER:
            return
        jobs = self._dispatch.leave(peer)
        self._log.taken(-len(jobs))
        if jobs:
            numbers = ", ".join(str(job.request) for job in jobs)
            self.context.event(
                "requeued",
                f"{peer.name} is gone; what it had goes back to the head of the queue: request {numbers}.",
                Level.WARNING,
                requests=[job.request for job in jobs],
            )

    def connection_refused(self, reason: str) -> None:
        """`ClientEvents`: an unknown or faulty client was disconnected."""
        self.context.event("refused", f"Connection closed: {reason}", Level.WARNING)

    def _answered(self, job: Job, done: Done) -> None:
        self._moved_ns = now_ns()
        self._log.answer(job, done)
        if self._folder is not None:
            self._folder.answer(job.request, done.answer)
        if not self._first[0]:
            self._first = (job.body, done.answer)

    def _raise_stall(self, now: int) -> None:
        if self._dispatch.outstanding or len(self._dispatch.queue):
            if now - self._moved_ns > _STALL_S * 1e9:
                raise UserError(f"No request was answered for {_STALL_S:g} s: see the signers' messages in the log.")
        else:
            self._moved_ns = now

    def _outcome(self) -> dict[str, Any]:
        log, dropped = self._log, self._dispatch.queue.dropped
        unfinished = len(self._dispatch.queue) + self._dispatch.outstanding
        self.context.event(
            END_EVENT,
            f"{log.received:,} requests arrived: {log.answered:,} signed, {log.failed:,} refused, {dropped:,} dropped, "
            f"{unfinished:,} left.",
            received=log.received,
            answered=log.answered,
            failed=log.failed,
            dropped=dropped,
            unfinished=unfinished,
        )
        request, answer = self._first
        return {"request": request.hex(), "answer": answer.hex()}
