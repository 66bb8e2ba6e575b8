"""Which signer gets which request: first in, first out, also when a signer is lost."""

from __future__ import annotations

import pytest

from labconsole.security.token.mechanisms import KeyKind
from labconsole_keypool.messages.service_frames import Job, JobKind, WireError
from labconsole_keypool.service.request_dispatch import Dispatch, RequestQueue


def job(request: int) -> Job:
    return Job(request, request * 1000, JobKind.DIGEST, KeyKind.P_256, b"")


def given(dispatch: Dispatch[str]) -> list[tuple[str, int]]:
    """Everything that can be given out now."""
    found = []
    while (assigned := dispatch.next()) is not None:
        found.append((assigned[0], assigned[1].request))
    return found


def test_a_request_that_finds_the_queue_full_is_dropped_and_counted() -> None:
    queue = RequestQueue(2)
    assert [queue.offer(job(number)) for number in (1, 2, 3, 4)] == [True, True, False, False]
    assert (len(queue), queue.dropped) == (2, 2)
    assert queue.take().request == 1
    assert queue.offer(job(5))
    endless = RequestQueue(0)
    assert all(endless.offer(job(number)) for number in range(10_000))


def test_requests_go_in_order_of_arrival_to_the_longest_idle_signer() -> None:
    dispatch: Dispatch[str] = Dispatch(RequestQueue(0))
    for signer in ("a", "b"):
        dispatch.join(signer)
    dispatch.want("b", 1)
    dispatch.want("a", 2)
    for number in (1, 2, 3, 4, 5):
        dispatch.queue.offer(job(number))
    assert given(dispatch) == [("b", 1), ("a", 2), ("a", 3)]
    assert (len(dispatch.queue), dispatch.outstanding, dispatch.threads) == (2, 3, 3)
    assert dispatch.done("a", 3) == job(3)
    dispatch.want("a", 1)
    assert given(dispatch) == [("a", 4)]


def test_requests_of_a_lost_signer_go_first_and_are_exempt_from_the_limit() -> None:
    dispatch: Dispatch[str] = Dispatch(RequestQueue(1))
    for signer in ("a", "b"):
        dispatch.join(signer)
    dispatch.want("a", 3)
    for number in (1, 2, 3):
        dispatch.queue.offer(job(number))
        given(dispatch)
    dispatch.queue.offer(job(4))
    dispatch.done("a", 2)
    dispatch.want("a", 1)  # it is idle and lost all the same
    assert {lost.request for lost in dispatch.leave("a")} == {1, 3}
    assert (len(dispatch.queue), dispatch.outstanding, dispatch.threads) == (3, 0, 0)
    dispatch.want("b", 3)
    assert given(dispatch) == [("b", 1), ("b", 3), ("b", 4)]
    assert dispatch.queue.dropped == 0


def test_an_answer_to_a_request_that_the_signer_did_not_have_is_refused() -> None:
    dispatch: Dispatch[str] = Dispatch(RequestQueue(0))
    dispatch.join("a")
    with pytest.raises(WireError, match="An answer to request 7 came from a signer that did not have it"):
        dispatch.done("a", 7)
