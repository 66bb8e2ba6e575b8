"""Proton's protocol engine at its C level, on one socket: the base of links and broker.

The engine turns AMQP frames into deliveries and back; it does no I/O. Here its bytes meet a non-blocking socket, plain
or TLS, without the reactor, event collector and wrapper objects of the Python package, each of which costs more per
message than the protocol itself. All calls on one engine come from one thread.
"""

from __future__ import annotations

import ctypes
import itertools
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import cproton_ffi  # type: ignore[import-not-found]
import numpy as np
from cproton_ffi import ffi as ffi
from cproton_ffi import lib as lib

from labconsole.clock import now_ns

MAX_FRAME_BYTES = 128 * 1024
"""Largest AMQP frame that is accepted: a FIXM flight plan of 43 KB fits into one."""

ENGINE_BYTES = 1 << 30
"""Largest message where there is no other limit: twice as many bytes abort proton's engine, and the process with it."""

_BUFFER_BYTES = 256 * 1024
_TAGS = 65536
WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _Buffers:
    """The buffers of an engine's transport, which its Python package does not offer: their use spares a copy.

    Raises AttributeError, OSError: the package's library exports no functions (Windows).
    """

    def __init__(self) -> None:
        library = ctypes.CDLL(cproton_ffi.__file__)
        self._head, self._tail, self._process = (
            getattr(library, f"pn_transport_{name}") for name in ("head", "tail", "process")
        )
        for function in (self._head, self._tail):
            function.argtypes, function.restype = (ctypes.c_void_p,), ctypes.c_void_p
        self._process.argtypes = (ctypes.c_void_p, ctypes.c_size_t)

    def output(self, address: int, size: int) -> Any:
        """The next `size` octets to be written."""
        return ffi.buffer(ffi.cast("char *", self._head(address)), size)

    def input(self, address: int, size: int) -> Any:
        """Where the next octets from the socket belong, at most `size` of them."""
        return ffi.buffer(ffi.cast("char *", self._tail(address)), size)

    def process(self, address: int, size: int) -> bool:
        """Process `size` octets of input; False: the engine takes no more."""
        return bool(self._process(address, size) >= 0)


try:
    _buffers: _Buffers | None = _Buffers()
except (AttributeError, OSError):
    _buffers = None


class ProtonEngine:
    """One `pn_connection_t` and `pn_transport_t` on a non-blocking `sock`; the engine owns and closes the socket.

    `connection` and `transport` are the engine's objects, valid until `free`. `eof`: the peer sends nothing
    more; `heard`: it has sent something; `blocked`: the socket accepted no more when output was last written. Its owner
    sets `dirty` when there is output, and `awaits_link` while the peer may open a session and a link.
    """

    def __init__(self, sock: socket.socket, *, server: bool, idle_timeout_s: float) -> None:
        self.sock = sock
        self.eof = False
        self.heard = False
        self.blocked = False
        self.dirty = False
        self.connection: Any = lib.pn_connection()
        self.transport: Any = lib.pn_transport()
        self.is_server = server
        self.awaits_link = False
        if server:
            lib.pn_transport_set_server(self.transport)
        lib.pn_transport_set_max_frame(self.transport, MAX_FRAME_BYTES)
        lib.pn_transport_set_idle_timeout(self.transport, int(idle_timeout_s * 1000))
        # TLS returns a record of at most 16 KB at a time, a plain socket everything at once.
        self._secure = isinstance(sock, ssl.SSLSocket)
        self._enough_bytes = _BUFFER_BYTES * 3 // 4 if self._secure else 1
        self._address = int(ffi.cast("uintptr_t", self.transport))
        self._buffers = _buffers
        if _buffers is not None:
            return
        self._input = memoryview(bytearray(_BUFFER_BYTES))
        self._input_start = ffi.from_buffer("char[]", self._input)
        self._output = memoryview(bytearray(_BUFFER_BYTES))
        self._output_start = ffi.from_buffer("char[]", self._output)

    def bind(self) -> None:
        """Join connection and transport, once container, user and SASL are set."""
        lib.pn_transport_bind(self.transport, self.connection)

    def read(self) -> bool:
        """Read from the socket into the engine, at most some 256 KB; False if there was nothing. Raises OSError."""
        count = self._fill()
        if count:
            self.heard = True
        if self.eof:
            lib.pn_transport_close_tail(self.transport)
        return count > 0 or self.eof

    def _fill(self) -> int:
        return self._read_copy() if self._buffers is None else self._read_in_place(self._buffers)

    def _read_in_place(self, buffers: _Buffers) -> int:
        count, transport, address = 0, self.transport, self._address
        while True:
            room = lib.pn_transport_capacity(transport)
            if room <= 0:
                self.eof = True  # as in `_push`
                break
            got = self._received(buffers.input(address, room))
            if got and not buffers.process(address, got):
                self.eof = True
            count += got
            if self.eof or not got:
                break
            # The rest of a TLS record that did not fit stays in the TLS layer, where no selector sees it.
            if count >= self._enough_bytes if got < room else count >= _BUFFER_BYTES and not self._left_in_tls:
                break
        return count

    @property
    def _left_in_tls(self) -> int:
        """Bytes of the last TLS record that have not been read yet."""
        return self.sock.pending() if isinstance(self.sock, ssl.SSLSocket) else 0

    def _read_copy(self) -> int:
        count = 0
        while count < self._enough_bytes and (got := self._received(self._input[count:])):
            count += got
        if count:
            self._push(self._input_start, count)
        return count

    def _received(self, buffer: Any) -> int:
        """Bytes that have been written into `buffer`: 0 if there were none, or at the end (`eof`). Raises OSError."""
        try:
            got = self.sock.recv_into(buffer)
        except WOULD_BLOCK:
            return 0
        self.eof |= got == 0
        return got

    def push(self, data: bytes) -> None:
        """Give the engine bytes that were read from the socket before it was created."""
        self._push(ffi.from_buffer("char[]", data), len(data))

    def _push(self, start: Any, count: int) -> None:
        done = 0
        while done < count:
            taken = lib.pn_transport_push(self.transport, start + done, count - done)
            if taken <= 0:
                # The engine has closed its input: AMQP close received, or a framing error (see `condition`).
                self.eof = True
                return
            done += taken

    def write(self) -> bool:
        """Write the engine's output to the socket; True when all of it is written. Raises OSError."""
        transport = self.transport
        while (pending := lib.pn_transport_pending(transport)) > 0:
            # On the second call the engine doubles a full output buffer, up to the peer's largest frame.
            pending = lib.pn_transport_pending(transport)
            if self._buffers is not None:
                output = self._buffers.output(self._address, pending)
            else:
                pending = min(pending, _BUFFER_BYTES)
                output = self._output[: lib.pn_transport_peek(transport, self._output_start, pending)]
            try:
                sent = self.sock.send(output)
            except WOULD_BLOCK:
                self.blocked = True
                return False
            lib.pn_transport_pop(transport, sent)
        self.blocked = False
        return True

    def tick(self) -> float:
        """Send a heartbeat and detect a silent peer when due; returns the seconds until the next call is due."""
        now_ms = now_ns() // 1_000_000 + 1
        deadline = lib.pn_transport_tick(self.transport, now_ms)
        return max(deadline - now_ms, 0) / 1000 if deadline else 3600.0

    @property
    def remote_open(self) -> bool:
        """Whether the peer has opened the connection and not closed it."""
        return bool(lib.pn_connection_state(self.connection) & lib.PN_REMOTE_ACTIVE)

    @property
    def remote_closed(self) -> bool:
        """Whether the peer has closed the connection with an AMQP close."""
        return bool(lib.pn_connection_state(self.connection) & lib.PN_REMOTE_CLOSED)

    @property
    def opened_by_peer(self) -> bool:
        """Whether the peer has opened a session or link that is not answered yet."""
        unanswered = lib.PN_LOCAL_UNINIT | lib.PN_REMOTE_ACTIVE
        return bool(lib.pn_session_head(self.connection, unanswered) or lib.pn_link_head(self.connection, unanswered))

    @property
    def failed(self) -> bool:
        """Whether the engine has failed the connection: a framing error, a silent peer, an end without close."""
        return bool(lib.pn_condition_is_set(lib.pn_transport_condition(self.transport)))

    @property
    def over(self) -> bool:
        """Whether no more input can come from the peer."""
        return self.eof or self.remote_closed or self.failed

    @property
    def condition(self) -> str | None:
        """Why the peer closed, or what the engine found wrong: `amqp:name (description)`, None if all is well."""
        return condition_text(lib.pn_connection_remote_condition(self.connection)) or condition_text(
            lib.pn_transport_condition(self.transport)
        )

    def free(self) -> None:
        """Close the socket and free the engine's objects with all sessions, links and deliveries. Call it once."""
        self.sock.close()
        lib.pn_transport_unbind(self.transport)
        lib.pn_decref(self.transport)
        lib.pn_connection_release(self.connection)
        lib.pn_decref(self.connection)
        self.transport = self.connection = None


class DeliveryTags:
    """Delivery tags, four bytes each, created once for several links. Keep the object while they are in use."""

    def __init__(self) -> None:
        self._bytes = ffi.new("char[]", np.arange(_TAGS, dtype=">u4").tobytes())
        self._structs = ffi.new("pn_bytes_t[]", _TAGS)
        fields = np.frombuffer(ffi.buffer(self._structs), np.uintp).reshape(_TAGS, 2)  # size_t size; char *start
        fields[:, 0] = 4
        fields[:, 1] = int(ffi.cast("uintptr_t", self._bytes)) + 4 * np.arange(_TAGS, dtype=np.uintp)
        self._tags = list(self._structs)

    def ring(self) -> Iterator[Any]:
        """The tags in turn, without end: those of one link."""
        return itertools.cycle(self._tags)


def condition_text(condition: Any) -> str | None:
    """An AMQP error condition as `amqp:name (description)`; None if it is not set."""
    if not lib.pn_condition_is_set(condition):
        return None
    name, description = (
        decode_c_string(lib.pn_condition_get_name(condition)),
        decode_c_string(lib.pn_condition_get_description(condition)),
    )
    return f"{name} ({description})" if description else name


def set_condition(condition: Any, name: str, description: str) -> None:
    """Set an AMQP error condition before closing a link, session or connection."""
    lib.pn_condition_set_name(condition, name.encode())
    lib.pn_condition_set_description(condition, description.encode())


def refuse_link(link: Any, description: str) -> None:
    """Answer a link to an address that is not there: without a terminus, then detached with the reason (2.6.3)."""
    own = lib.pn_link_target(link) if lib.pn_link_is_receiver(link) else lib.pn_link_source(link)
    lib.pn_terminus_set_type(own, lib.PN_UNSPECIFIED)
    lib.pn_link_open(link)
    set_condition(lib.pn_link_condition(link), "amqp:not-found", description)
    lib.pn_link_close(link)


def decode_c_string(chars: Any) -> str | None:
    """A C string of the engine, None for NULL."""
    return None if chars == ffi.NULL else ffi.string(chars).decode("utf-8", "replace")
