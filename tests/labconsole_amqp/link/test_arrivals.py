"""Tests of the messages that have arrived: their times, their order, and what they are compared with."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from labconsole.clock import now_ns
from labconsole_amqp.link.arrivals import Arrival, ArrivalClock, Compared, Rows, TemplateMatcher, joined
from labconsole_amqp.wire.template import Template

TEMPLATE = Template(b"small" + bytes(8) + b"message" + bytes(8), 5, 20)


def rows(*messages: bytes) -> Rows:
    """Small messages of one length, that were taken now."""
    return Rows(
        np.full(len(messages), now_ns()), np.frombuffer(b"".join(messages), np.uint8).reshape(len(messages), -1)
    )


class TestArrivalClock:
    def test_times_rise_in_a_read_of_small_and_large_messages(self) -> None:
        clock = ArrivalClock()
        read_ns = now_ns()
        times = [*clock.times(3, read_ns), clock.time(read_ns), clock.time(read_ns), *clock.times(2, read_ns)]
        assert times[0] == read_ns
        assert times == sorted(times)
        assert times[-1] <= now_ns()

    def test_the_first_message_of_a_read_has_the_time_of_the_read(self) -> None:
        clock = ArrivalClock()
        reads = [now_ns(), now_ns() + 1_000_000_000]
        assert [clock.time(read_ns) for read_ns in reads] == reads
        assert clock.times(1, reads[1] + 5).tolist() == [reads[1] + 5]


def test_matcher_of_a_large_message_takes_the_memory_of_a_few_messages() -> None:
    message = bytes(1 << 20)
    tracemalloc.start()
    try:
        matcher = TemplateMatcher(Template(message, 5))
        assert matcher.check_one(memoryview(message)) == (0, -1)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(message)
    finally:
        tracemalloc.stop()


class TestJoined:
    def test_messages_of_several_lengths_keep_their_order(self) -> None:
        other = Template(b"another" + bytes(8), 7)
        matchers = {len(one.message): TemplateMatcher(one) for one in (TEMPLATE, other)}
        arrivals = [
            Arrival(rows(TEMPLATE.filled(7, 70), TEMPLATE.filled(8, 80)), 0, False),
            Arrival(rows(other.filled(0, 90)), 2, False),
            Arrival(Compared([now_ns()], 2_000, [(100, 9)]), 3, False),
            Arrival(rows(TEMPLATE.filled(10, 110), b"x" * len(TEMPLATE.message)), 4, False),
        ]
        batch = joined(arrivals, matchers)
        assert batch.stamps_ms.tolist() == [70, 80, 90, 100, 110, -1]
        assert batch.numbers.tolist() == [7, 8, -1, 9, 10, -1]
        assert batch.matched.tolist() == [True] * 5 + [False]
        assert batch.sizes.tolist() == [28, 28, 15, 2_000, 28, 28]
        assert batch.raw == {5: b"x" * 28}

    @pytest.mark.parametrize("begin", range(4))
    def test_a_part_has_the_ids_and_messages_from_there_on(self, begin: int) -> None:
        messages = [TEMPLATE.filled(number, 1) for number in range(4)]
        for arrived in (rows(*messages), Compared([1, 2, 3, 4], 28, list[tuple[int, int] | bytes](messages))):
            part = Arrival(arrived, 2**32 - 2, True).part(begin, 4)
            batch = joined([part], {28: TemplateMatcher(TEMPLATE)})
            assert (part.first_id, part.settled) == (2**32 - 2 + begin, True)
            assert batch.numbers.tolist() == list(range(begin, 4))
