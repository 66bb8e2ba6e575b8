"""An end's engine: proton opens, attaches and closes; frames of messages pass by it, straight to and from the links.

Proton copies each message twice and calls for it several times; a link that reads and writes its transfers itself, many
at a time and in place, takes a fraction of that (measured: docs/measurements.md).
"""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections import deque

import numpy as np

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole_amqp.link.performatives import FRAME_HEAD, Fields, Performative, code_of
from labconsole_amqp.link.proton_engine import MAX_FRAME_BYTES, WOULD_BLOCK, ProtonEngine, ffi, lib
from labconsole_amqp.wire.amqp_types import EnvelopeError

_INPUT_BYTES = 512 * 1024
_OUTPUT_BYTES = 16 * 1024
_HEADER_BEGIN = int.from_bytes(b"AMQP", "big")
"""A protocol header, of eight bytes, in the place of a frame's size."""
_EMPTY_FRAME = b"\0\0\0\x08\x02\0\0\0"
_HEARD_NS = 200_000_000
"""At this interval proton learns that the peer is not silent, while its frames pass by, or a long one comes slowly."""
_OF_LINKS = (Performative.FLOW, Performative.TRANSFER, Performative.DISPOSITION)


class FrameLink(ABC):
    """What takes the frames of a session with one link."""

    @abstractmethod
    def attached(self, channel: int, begin: Fields, attach: Fields) -> None:
        """The peer has attached: our `channel`, and its begin and attach. Raises EnvelopeError."""

    @abstractmethod
    def take(self, code: int, at: int, size: int, end: int) -> int:
        """Take the frame of `size` bytes at byte `at` of the engine's `input`, and those like it before `end`.

        Returns how many bytes were taken. Raises EnvelopeError.
        """


class FramedEngine(ProtonEngine):
    """As `ProtonEngine`; `peer` names the other end in messages. `input` holds what has been read, at `read_ns`.

    The one of a `server` keeps what its peer attaches until there is a link that expects it.
    """

    def __init__(self, sock: socket.socket, peer: str, *, idle_timeout_s: float, server: bool = False) -> None:
        super().__init__(sock, server=server, idle_timeout_s=idle_timeout_s)
        self.input = memoryview(bytearray(_INPUT_BYTES))
        self.octets = np.frombuffer(self.input, np.uint8)
        """The same bytes for numpy."""
        self._peer = peer
        self._input_at = ffi.from_buffer("char[]", self.input)
        self._filled = 0
        self._raw = False
        """Whether what comes is no frame: proton says what is wrong with it."""
        self._to_write: deque[memoryview] = deque()
        self._own_output = ffi.new("char[]", _OUTPUT_BYTES)
        self._awaited: dict[bytes, FrameLink] = {}
        self._begun: dict[int, Fields] = {}
        self._unexpected: dict[bytes, tuple[int, Fields, Fields]] = {}
        """What the peer of a server has attached so far: its channel, begin and attach, by the link's name."""
        self._links: dict[int, FrameLink] = {}
        """By the peer's channel."""
        self._heard_ns = self.read_ns = 0

    def free(self) -> None:
        """As `ProtonEngine.free`; without its links, so that its input is not kept until garbage is looked for."""
        super().free()
        self._links.clear()
        self._awaited.clear()

    def expect(self, name: bytes, link: FrameLink) -> None:
        """Give the frames of the session in which the link of this name is attached to `link`. Raises UserError."""
        if (attached := self._unexpected.pop(name, None)) is None:
            self._awaited[name] = link
            return
        try:
            self._join(link, *attached)
        except EnvelopeError as error:
            raise UserError(self._unreadable(error)) from error

    def feed(self, data: bytes) -> None:
        """Take what was read from the socket before the engine was created, at most a buffer's length."""
        self.input[: len(data)] = data
        self._filled = len(data)
        self.read_ns = now_ns()
        self._split()

    def put(self, frames: bytes | memoryview) -> None:
        """Write these frames, once `write` is called; the bytes must stay as they are until they are written."""
        self._collect()
        self._to_write.append(memoryview(frames))

    @property
    def written(self) -> bool:
        """Whether everything that was put is written."""
        return not self._to_write

    def write(self) -> bool:
        """Write to the socket; True when everything is written. Raises OSError."""
        self._collect()
        waiting = self._to_write
        while waiting:
            try:
                sent = self.sock.send(waiting[0])
            except WOULD_BLOCK:
                self.blocked = True
                return False
            if sent < len(waiting[0]):
                waiting[0] = waiting[0][sent:]
            else:
                waiting.popleft()
        self.blocked = False
        return True

    def _collect(self) -> None:
        """Queue proton's own frames, in their turn."""
        while (pending := lib.pn_transport_pending(self.transport)) > 0:
            size = lib.pn_transport_peek(self.transport, self._own_output, min(pending, _OUTPUT_BYTES))
            self._to_write.append(memoryview(ffi.buffer(self._own_output, size)[:]))
            lib.pn_transport_pop(self.transport, size)

    def _fill(self) -> int:
        count, failure = 0, None
        # A TLS layer returns a record of at most 16 KB at a time, and keeps what there is no room for.
        while count < self._enough_bytes and not self.eof:
            try:
                got = self._received(self.input[self._filled :])
            except OSError as error:
                failure = error
                break
            if not got:
                break
            count += got
            self._filled += got
        if count:
            self.read_ns = now_ns()
            self._split()
        if failure is not None:  # after what was read before it
            raise failure
        return count

    def _split(self) -> None:
        """Give what has been read to the links and to proton, frame by frame."""
        at, end, passed = 0, self._filled, 0
        try:
            while end - at >= FRAME_HEAD.size and not self._raw:
                size, words, kind, channel = FRAME_HEAD.unpack_from(self.input, at)
                if size == _HEADER_BEGIN:
                    size, kind = FRAME_HEAD.size, -1
                elif not FRAME_HEAD.size <= size <= MAX_FRAME_BYTES or 4 * words > size:
                    self._raw = True
                    break
                if at + size > end:
                    break
                code = code_of(self.input[at : at + size], 4 * words) if kind == 0 else 0
                link = self._links.get(channel) if code in _OF_LINKS else None
                if link is None:
                    if code:
                        self._note(code, channel, at, size)
                    at += size
                    continue
                self._pass_on(passed, at)
                at = passed = at + link.take(code, at, size, end)
        except (EnvelopeError, UserError) as error:
            self.eof, self._filled = True, 0
            if isinstance(error, UserError):
                raise
            raise UserError(self._unreadable(error)) from error
        if self._raw:
            at = end
        self._pass_on(passed, at)
        self._filled = end - at
        if at and self._filled:
            self.input[: self._filled] = self.input[at:end]
        if self._links and self.read_ns - self._heard_ns > _HEARD_NS:
            self._heard_ns = self.read_ns
            self.push(_EMPTY_FRAME)

    def _unreadable(self, error: EnvelopeError) -> str:
        return f"{self._peer} sent a frame that cannot be read: {error}"

    def _pass_on(self, begin: int, end: int) -> None:
        if end > begin:
            self._push(self._input_at + begin, end - begin)

    def _note(self, code: int, channel: int, at: int, size: int) -> None:
        """Find out which channel belongs to which link, while links are being attached."""
        if code in (Performative.BEGIN, Performative.END):
            self._links.pop(channel, None)
            self._begun.pop(channel, None)
        if not (self._awaited or self.is_server) or code not in (Performative.BEGIN, Performative.ATTACH):
            return
        fields = Fields(bytes(self.input[at : at + size]))
        if code == Performative.BEGIN:
            self._begun[channel] = fields
        elif channel in self._begun:
            name = fields.octets(0)
            if (link := self._awaited.pop(name, None)) is not None:
                self._join(link, channel, self._begun.pop(channel), fields)
            elif self.is_server:
                self._unexpected[name] = channel, self._begun[channel], fields

    def _join(self, link: FrameLink, channel: int, begin: Fields, attach: Fields) -> None:
        """Give the frames of the peer's channel to `link`. Ours is in an answer; a server's first session has 0."""
        link.attached(begin.uint(0), begin, attach)
        self._links[channel] = link
