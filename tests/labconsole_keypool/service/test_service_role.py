"""The signing service alone: its signers and generators are played over real connections."""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np
import pytest

from labconsole_keypool.messages.service_frames import Busy, Done, End, Idle, JobStatus, Member, Want, encode
from labconsole_keypool.service.connections import LinkClosedError
from tests.labconsole_keypool.service_lab import Service, Signer

TIMEOUT_S = 60.0
FAST = {"arrivals": "constant", "rate": 10_000.0, "key_kind": "p-256"}


def test_requests_come_when_they_are_due_and_each_is_answered_once(tmp_path: Path) -> None:
    with Service(tmp_path / "run", **{**FAST, "rate": 200.0}, requests=20) as service:
        signer = Signer(service, 2)
        begin_ns = service.let_requests_come()
        for at in range(20):
            signer.wait_for(at + 1)
            signer.answer(signer.jobs[at], key=at + 1)
        samples = service.samples()
    table = samples.table("requests", "service")
    assert table["request"].tolist() == list(range(1, 21))
    assert (table["received"] - begin_ns).tolist() == [at * 5_000_000 for at in range(20)], "as planned, to the ns"
    assert (table["started"] >= table["received"]).all(), "no request is given out before it is due"
    assert len({job.body for job in signer.jobs}) == 20
    (end,) = [event.data for event in samples.events if event.name == "end of requests"]
    assert (end["received"], end["answered"], end["dropped"], end["unfinished"]) == (20, 20, 0, 0)


def test_a_full_queue_drops_and_the_rest_is_served_in_order(tmp_path: Path) -> None:
    with Service(tmp_path / "run", **FAST, requests=30, queue_limit=5) as service:
        signer = Signer(service, 1)
        service.let_requests_come()
        signer.wait_for(1)
        generator = service.link(Member.GENERATOR, "generator-1")
        while Busy() not in (frames := generator.receive(TIMEOUT_S)):
            assert frames, "a generator pauses while requests wait"
        for at in range(6):
            signer.wait_for(at + 1)
            if at == 0:
                while service.context._live._total("dropped").count < 24:
                    signer.link.receive(0.01)
            signer.answer(signer.jobs[at])
        while Idle() not in (frames := generator.receive(TIMEOUT_S)):
            assert frames, "it may generate when no request waits"
        samples = service.samples()
    assert [job.request for job in signer.jobs] == [1, 2, 3, 4, 5, 6]
    assert samples.table("drops", "service")["request"].tolist() == list(range(7, 31))
    queue = samples.table("queue", "service")
    assert queue["length"].tolist() == [1, 2, 3, 4, 5, 4, 3, 2, 1, 0]
    assert (np.diff(queue["t"]) >= 0).all()


def test_requests_of_a_lost_signer_go_to_another_with_their_old_time(tmp_path: Path) -> None:
    with Service(tmp_path / "run", **FAST, requests=3) as service:
        first = Signer(service, 2)
        service.let_requests_come()
        first.wait_for(2)
        first.link.close()
        service.until_threads(0)
        second = Signer(service, 1, "signer-1b")
        for at in range(3):
            second.wait_for(at + 1)
            second.answer(second.jobs[at])
        samples = service.samples()
    assert second.jobs[:2] == first.jobs
    assert samples.table("requests", "service")["request"].tolist() == [1, 2, 3]
    (event,) = [event for event in samples.events if event.name == "requeued"]
    assert event.message == "signer-1 is gone; what it had goes back to the head of the queue: request 1, 2."
    assert service.live("received") == service.live("taken") == 3, "requests that come back count as not taken"


def test_signers_hear_when_more_wait_than_they_can_begin(tmp_path: Path) -> None:
    with Service(tmp_path / "run", **FAST, requests=6) as service:
        signer = Signer(service, 2)
        service.let_requests_come()
        while Busy() not in signer.signals:
            signer.receive()
        for at in range(6):
            signer.wait_for(at + 1)
            signer.answer(signer.jobs[at])
        service.samples()
    assert signer.signals[:3] == [Idle(), Busy(), Idle()]


def test_a_refused_request_is_a_failure_and_no_signature(tmp_path: Path) -> None:
    with Service(tmp_path / "run", **FAST, requests=2, content="sign-requests") as service:
        signer = Signer(service, 1)
        service.let_requests_come()
        for at, status in enumerate((JobStatus.FAILED, JobStatus.SIGNED)):
            signer.wait_for(at + 1)
            signer.answer(signer.jobs[at], status=status)
        samples = service.samples()
    assert b"SignRequest" in signer.jobs[0].body
    assert samples.table("failures", "service")["request"].tolist() == [1]
    assert samples.table("requests", "service")["request"].tolist() == [2]


def test_unknown_client_is_refused(tmp_path: Path) -> None:
    with Service(tmp_path / "run", **FAST, requests=1) as service:
        unknown = service.link(token=bytes(32))
        with pytest.raises(LinkClosedError, match="closed the connection before its end"):
            while True:
                assert unknown.receive(TIMEOUT_S) or pytest.fail("nothing happened")
        unknown.close()
        with socket.create_connection(("127.0.0.1", service.port), TIMEOUT_S) as noise:
            noise.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert noise.recv(100) == b""
        with socket.create_connection(("127.0.0.1", service.port), TIMEOUT_S) as hasty:
            hasty.sendall(encode(Want(1)))
            assert hasty.recv(100) == b""
        liar = Signer(service, 0)
        liar.link.send(Done(1, 0, 0, 0, 0, 4, JobStatus.SIGNED, b""))  # type: ignore[arg-type]
        with pytest.raises(LinkClosedError):
            while True:
                liar.receive()
        liar.link.close()
        service.let_requests_come()
        signer = Signer(service, 1)
        signer.wait_for(1)
        signer.answer(signer.jobs[0])
        samples = service.samples()
    refusals = [event.message for event in samples.events if event.name == "refused"]
    assert refusals == [
        "Connection closed: An unknown client connected to the signing service, and did not show its token.",
        "Connection closed: A frame of 542,393,671 bytes came; none has more than 4,194,304.",
        "Connection closed: An unknown client connected to the signing service, and did not show its token.",
        "Connection closed: An answer to request 1 came from a signer that did not have it.",
    ]


def test_cancelled_run_reports_unfinished_requests_and_disconnects_its_clients(tmp_path: Path) -> None:
    with Service(tmp_path / "run", **FAST, requests=3) as service:
        signer = Signer(service, 1)
        service.let_requests_come()
        signer.wait_for(1)
        service.stop()
        while End() not in signer.receive():
            pass
        signer.link.close()
        samples = service.samples()
    (end,) = [event.data for event in samples.events if event.name == "end of requests"]
    assert end["answered"] == 0 and end["unfinished"] == end["received"] >= 1
