"""Frames between the service, its signers and its generators: what goes in comes out, however it was cut."""

from __future__ import annotations

import pytest

from labconsole.security.token.mechanisms import KeyKind
from labconsole_keypool.choices import KeyOrigin
from labconsole_keypool.messages.service_frames import (
    LONGEST_FRAME,
    TOKEN_BYTES,
    Busy,
    Decoder,
    Done,
    End,
    Frame,
    Hello,
    Idle,
    Job,
    JobKind,
    JobStatus,
    Member,
    Want,
    WireError,
    encode,
)

FRAMES: tuple[Frame, ...] = (
    Hello(bytes(range(TOKEN_BYTES)), Member.GENERATOR, "generator-1b"),
    Want(7),
    Job(4_000_000_000, -5, JobKind.SIGN_REQUEST, KeyKind.P_256, b"<xml/>" * 500),
    Job(1, 2**62, JobKind.DIGEST, KeyKind.RSA_4096, b""),
    Done(9, 1, 2, 3, 4, KeyOrigin.TOKEN_STORE, JobStatus.SIGNED, b"certificate", 2**40),
    Done(9, 1, 2, 3, 4, KeyOrigin.NONE, JobStatus.FAILED, "nicht möglich".encode()),
    Idle(),
    Busy(),
    End(),
)


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 100, 100_000])
def test_frames_come_out_whole_and_in_order_however_they_were_cut(piece: int) -> None:
    data = b"".join(map(encode, FRAMES))
    decoder = Decoder()
    found = [frame for at in range(0, len(data), piece) for frame in decoder.feed(data[at : at + piece])]
    assert tuple(found) == FRAMES


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (encode(Want(1))[:4] + b"\x63" + encode(Want(1))[5:], "A frame of the unknown type 99 came."),
        (b"\xff\xff\xff\xff\x02", f"A frame of 4,294,967,295 bytes came; none has more than {LONGEST_FRAME:,}."),
        (b"\x00\x00\x00\x00\x02", f"A frame of 0 bytes came; none has more than {LONGEST_FRAME:,}."),
        (b"\x02\x00\x00\x00\x02\x01", "A frame of type 2 is damaged: unpack requires a buffer of 4 bytes."),
        (encode(FRAMES[3]).replace(b"\x02", b"\x2a"), None),
        (encode(FRAMES[0])[:-1] + b"\xff", None),
    ],
)
def test_invalid_frame_is_refused_in_one_sentence(data: bytes, sentence: str | None) -> None:
    with pytest.raises(WireError) as caught:
        Decoder().feed(data)
    assert sentence is None or str(caught.value) == sentence
    assert str(caught.value).startswith("A frame of ")
