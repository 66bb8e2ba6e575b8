"""AMQP frames for the tests: built by hand, recorded from a connection, and mutants of these."""

from __future__ import annotations

import bisect
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from proton import Data, Described, ulong

from labconsole_amqp.link.connection import Endpoint

_HEADER_BYTES = 8
_INTERESTING = (b"\x00", b"\xff", b"\x7f", b"\x80", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x7f\xff\xff\xff")
_TYPES = bytes.fromhex("40 41 42 43 44 45 50 53 56 60 70 80 a0 a1 a3 b0 b1 b3 c0 c1 d0 d1 e0 f0 00")


OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DETACH, CLOSE = 0x10, 0x11, 0x12, 0x13, 0x14, 0x16, 0x18
SASL_INIT, SASL_OUTCOME = 0x41, 0x44
AMQP = b"AMQP\0\1\0\0"
SASL = b"AMQP\3\1\0\0"


def frame(code: int, fields: list[Any], payload: bytes = b"", channel: int = 0, kind: int = 0) -> bytes:
    """An AMQP (`kind` 0) or SASL (1) frame."""
    data = Data()
    data.put_object(Described(ulong(code), fields))
    body = bytes(data.encode()) + payload
    return (len(body) + 8).to_bytes(4, "big") + bytes((2, kind)) + channel.to_bytes(2, "big") + body


class Frame(NamedTuple):
    """A protocol header or frame, and how many bytes the other end had sent before it arrived."""

    data: bytes
    after: int


@dataclass
class RecordedStream:
    """The bytes that one end of a connection has sent."""

    stream: bytearray = field(default_factory=bytearray)
    chunks: list[tuple[int, int]] = field(default_factory=list)
    """Where each chunk begins, and how many bytes the other end had sent before it."""

    def frames(self) -> list[Frame]:
        """The stream cut into protocol headers and frames."""
        parts, at = [], 0
        starts = [start for start, _ in self.chunks]
        while at < len(self.stream):
            head = self.stream[at : at + 4]
            size = _HEADER_BYTES if head == b"AMQP" else int.from_bytes(head, "big")
            after = self.chunks[bisect.bisect_right(starts, at) - 1][1]
            parts.append(Frame(bytes(self.stream[at : at + size]), after))
            at += size
        return parts


@contextmanager
def recorded(endpoint: Endpoint) -> Iterator[tuple[Endpoint, RecordedStream, RecordedStream]]:
    """A relay to `endpoint` for one client, and the streams of client and broker; complete after the block."""
    client, broker = RecordedStream(), RecordedStream()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        relay = threading.Thread(target=_relay, args=(listener, endpoint, client, broker))
        relay.start()
        try:
            yield Endpoint("127.0.0.1", listener.getsockname()[1]), client, broker
        finally:
            relay.join()


def _relay(listener: socket.socket, endpoint: Endpoint, client: RecordedStream, broker: RecordedStream) -> None:
    near, _ = listener.accept()
    with near, socket.create_connection((endpoint.host, endpoint.port)) as far:
        back = threading.Thread(target=_copy, args=(far, near, broker, client))
        back.start()
        _copy(near, far, client, broker)
        back.join()


def _copy(
    source: socket.socket, target: socket.socket, recording: RecordedStream, other_stream: RecordedStream
) -> None:
    try:
        while data := source.recv(65536):
            recording.chunks.append((len(recording.stream), len(other_stream.stream)))
            recording.stream += data
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # The other end has hung up already.
        return


def mutants(frames: list[Frame], count: int, seed: int) -> Iterator[list[Frame]]:
    """`count` variants of `frames`, changed in one to four places: bytes, types, fields, frames, sizes."""
    randomness = random.Random(seed)
    for _ in range(count):
        parts = list(frames)
        for _ in range(randomness.choice((1, 1, 1, 2, 3, 4))):
            if parts:
                _mutate(parts, randomness)
        yield parts


def _mutate(parts: list[Frame], randomness: random.Random) -> None:
    place = randomness.randrange(len(parts))
    data, after = parts[place]
    match randomness.randrange(9):
        case 0:
            del parts[place]
        case 1:
            parts.insert(randomness.randrange(len(parts) + 1), parts[place])
        case 2:
            other = randomness.randrange(len(parts))
            parts[place], parts[other] = parts[other], parts[place]
        case 3:
            parts[place] = Frame(data[: randomness.randrange(len(data) + 1)], after)
        case 4 | 5 if data:
            at = randomness.randrange(min(len(data), 400))
            parts[place] = Frame(data[:at] + bytes((randomness.randrange(256),)) + data[at + 1 :], after)
        case _:
            parts[place] = Frame(_mutate_body(data, randomness), after)


def _mutate_body(part: bytes, randomness: random.Random) -> bytes:
    """A frame of the right size with changed content."""
    if len(part) <= _HEADER_BYTES:
        return part
    head, body = part[:_HEADER_BYTES], bytearray(part[_HEADER_BYTES:])
    at = randomness.randrange(min(len(body), 200))
    new = randomness.choice(_INTERESTING)
    match randomness.randrange(5):
        case 0:
            body[at : at + len(new)] = new
        case 1:
            body[at:at] = new
        case 2:
            del body[at : at + randomness.randrange(1, 9)]
        case 3:
            body[at] = randomness.choice(_TYPES)
        case _:
            body[at:at] = body[at : at + randomness.randrange(1, 40)] * randomness.randrange(1, 30)
    return (len(body) + _HEADER_BYTES).to_bytes(4, "big") + head[4:] + bytes(body)
