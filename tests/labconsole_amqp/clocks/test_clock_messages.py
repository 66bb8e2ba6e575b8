"""Messages of two consoles on their clocks: what another program may have sent is left out."""

from __future__ import annotations

import pytest

from labconsole.clock_comparison import BEFORE, Offset
from labconsole_amqp.clocks.clock_ends import _is_well_formed

MS = 1_000_000
OFFSET = 3_000 * MS
PONG = {"kind": "pong", "session": "s", "trial": "t", "host": "h", "wall": 1, "n": 1, "t2": 2, "t3": 3, "over": False}


@pytest.mark.parametrize(
    "changed",
    [
        *({"kind": "other"}, {"kind": ["pong"]}, {"t2": "2"}, {"t2": 2**63}, {"t3": None}, {"host": "h" * 256}),
        *({"trial": 5}, {"session": None}, {"host": "\ud800"}, {"host": "\x1b[2J"}, {"n": True}, {"over": 1}),
    ],
)
def test_messages_that_another_program_may_have_sent_are_left_out(changed: dict[str, object]) -> None:
    assert _is_well_formed(PONG)
    assert not _is_well_formed(PONG | changed)


@pytest.mark.parametrize(
    "changed", [{"phase": "during"}, {"uncertainty_ns": 0}, {"uncertainty_ns": -5 * MS}, {"exchanges": 0}]
)
def test_an_offset_that_cannot_be_measured_is_left_out(changed: dict[str, object]) -> None:
    sent = {**PONG, "kind": "offset", "phase": BEFORE, **Offset(OFFSET, MS, 0, OFFSET, 0, 0, 1).to_json()}
    assert _is_well_formed(sent)
    assert not _is_well_formed(sent | changed)
