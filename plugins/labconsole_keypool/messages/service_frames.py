"""The frames between signing service, signers and generators: length-prefixed, bytes in and out, no sockets.

A frame is `u4 length | u1 type | body`, little endian; the length counts type and body. Times are `clock.now_ns`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from labconsole.errors import UserError
from labconsole.security.token.mechanisms import KeyKind
from labconsole_keypool.choices import KeyOrigin

LONGEST_FRAME = 4 * 1024 * 1024
"""Bytes of type and body: a SignRequest has 1 MB at most, its answer a little more."""

TOKEN_BYTES = 32
"""Length of the random token that a client shows first."""

_KINDS = tuple(KeyKind)


class WireError(UserError):
    """The received bytes are not a frame of this protocol."""


class JobKind(IntEnum):
    """The form of a job's body."""

    DIGEST = 0
    """The bytes to be signed."""
    SIGN_REQUEST = 1
    """An OASIS DSS SignRequest (Appendix A), XML."""


class JobStatus(IntEnum):
    """The result of a job."""

    SIGNED = 0
    FAILED = 1


class Member(IntEnum):
    """The role of a client of the service."""

    SIGNER = 0
    GENERATOR = 1


@dataclass(frozen=True, slots=True)
class Hello:
    """A client's first frame: the run's token, its role and its name."""

    token: bytes
    member: Member
    name: str


@dataclass(frozen=True, slots=True)
class Want:
    """A signer has `jobs` more idle threads."""

    jobs: int


@dataclass(frozen=True, slots=True)
class Job:
    """A request for a signer. `key_kind` is what the scenario asks for; a SignRequest's algorithm may ask for another.

    `received_ns` is when it arrived at the service.
    """

    request: int
    received_ns: int
    kind: JobKind
    key_kind: KeyKind
    body: bytes


@dataclass(frozen=True, slots=True)
class Done:
    """A signer's answer, with the time stamps of Table 3-2.

    Attributes:
        request: As in the job.
        started_ns: A thread of the signer began it.
        got_key_ns: Its key pair was in the token.
        signed_ns: The signature was there.
        finished_ns: The answer was there: certificate issued, private key destroyed.
        source: Where the key came from.
        status: Whether it was signed.
        answer: Certificate (DER) of a digest, SignResponse (XML) of a sign request; a sentence where it failed.
        key: Row of the key in the key store, 0 for one that was generated for this request.
    """

    request: int
    started_ns: int
    got_key_ns: int
    signed_ns: int
    finished_ns: int
    source: KeyOrigin
    status: JobStatus
    answer: bytes
    key: int = 0


@dataclass(frozen=True, slots=True)
class Idle:
    """No request waits: a generator may generate, a signer may refill."""


@dataclass(frozen=True, slots=True)
class Busy:
    """Requests wait (for generators), or more than can be begun at once (for signers): pause."""


@dataclass(frozen=True, slots=True)
class End:
    """The service has no more work: close."""


Frame: TypeAlias = Hello | Want | Job | Done | Idle | Busy | End

_LENGTH = struct.Struct("<IB")
_HELLO = struct.Struct(f"<{TOKEN_BYTES}sB")
_WANT = struct.Struct("<I")
_JOB = struct.Struct("<IqBB")
_DONE = struct.Struct("<IqqqqBBq")
_TYPES: dict[type, int] = {Hello: 1, Want: 2, Job: 3, Done: 4, Idle: 5, Busy: 6, End: 7}
_SIGNALS: dict[int, Frame] = {5: Idle(), 6: Busy(), 7: End()}


def encode(frame: Frame) -> bytes:
    """The frame's bytes."""
    body = _body(frame)
    return _LENGTH.pack(len(body) + 1, _TYPES[type(frame)]) + body


def _body(frame: Frame) -> bytes:
    match frame:
        case Job():
            head = _JOB.pack(frame.request, frame.received_ns, frame.kind, _KINDS.index(frame.key_kind))
            return head + frame.body
        case Done():
            times = (frame.started_ns, frame.got_key_ns, frame.signed_ns, frame.finished_ns)
            return _DONE.pack(frame.request, *times, frame.source, frame.status, frame.key) + frame.answer
        case Want():
            return _WANT.pack(frame.jobs)
        case Hello():
            return _HELLO.pack(frame.token, frame.member) + frame.name.encode()
        case _:
            return b""


class Decoder:
    """Decodes frames from a stream of bytes in pieces of any size."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that `data` completes, in order. Raises WireError: they are not frames."""
        self._waiting += data
        frames: list[Frame] = []
        begin = 0
        while len(self._waiting) - begin >= _LENGTH.size:
            length, kind = _LENGTH.unpack_from(self._waiting, begin)
            if not 1 <= length <= LONGEST_FRAME:
                raise WireError(f"A frame of {length:,} bytes came; none has more than {LONGEST_FRAME:,}.")
            end = begin + 4 + length
            if len(self._waiting) < end:
                break
            frames.append(_frame(kind, bytes(self._waiting[begin + _LENGTH.size : end])))
            begin = end
        del self._waiting[:begin]
        return frames


def _frame(kind: int, body: bytes) -> Frame:
    if kind in _SIGNALS:
        return _SIGNALS[kind]
    try:
        match kind:
            case 1:
                token, member = _HELLO.unpack_from(body)
                return Hello(token, Member(member), body[_HELLO.size :].decode())
            case 2:
                return Want(*_WANT.unpack(body))
            case 3:
                request, received_ns, job, key_kind = _JOB.unpack_from(body)
                return Job(request, received_ns, JobKind(job), _KINDS[key_kind], body[_JOB.size :])
            case 4:
                request, started, got_key, signed, finished, source, status, key = _DONE.unpack_from(body)
                answer = body[_DONE.size :]
                return Done(
                    request, started, got_key, signed, finished, KeyOrigin(source), JobStatus(status), answer, key
                )
    except (struct.error, ValueError, IndexError) as error:
        raise WireError(f"A frame of type {kind} is damaged: {error}.") from error
    raise WireError(f"A frame of the unknown type {kind} came.")
