"""Live runs that cannot start, are cancelled or killed: one clear sentence, and what was recorded is kept."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labconsole.model.trial import Samples
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from labconsole_v2x.live.live_trial import LiveTrial
from labconsole_v2x.live.series import QUIET_NS
from labconsole_v2x.panel.run_capture import RunCapture, _write_blocks, write_run_capture
from labconsole_v2x.stations.capture import capture_header, packet_block, read_capture
from tests.helpers.capabilities import without_capabilities
from tests.helpers.practice import Bench
from tests.labconsole_v2x.live.live_lab import PROCESSES, LiveLab, Outcome, own_transport, run

linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
LONG = {"senders": 6, "rate": 20.0, "warm_up": 0.2, "duration": 60.0}
"""A run that is ended before its time."""
RATE = 120.0
"""Its CAMs a second, so few that a receiver on a busy computer is not behind when the run ends."""


@pytest.fixture
def used_port() -> Iterator[int]:
    """A port of another program."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        yield other.getsockname()[1]


def never_began(outcome: Outcome) -> bool:
    """Whether a run failed by one sentence before its T0."""
    return (
        outcome.failure is not None
        and "\n" not in outcome.failure
        and not outcome.events_named("T0")
        and not outcome.evaluation.metrics
    )


def test_port_in_use_is_named(tmp_path: Path, used_port: int) -> None:
    outcome = run(tmp_path / "run", transport="udp-unicast", port=used_port)
    assert never_began(outcome)
    assert outcome.failure == f"Port {used_port} is in use: choose another port, or end the program that uses it."


@linux
def test_missing_rights_are_named(tmp_path: Path) -> None:
    outcome = without_capabilities(lambda: run(tmp_path / "run", transport="ethernet"))
    assert never_began(outcome)
    assert outcome.failure == (
        "Raw Ethernet frames need the right CAP_NET_RAW: start the console as root, or choose UDP multicast."
    )


def test_interface_that_is_not_there_is_named(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", interface="203.0.113.1")
    assert never_began(outcome) and outcome.failure is not None
    assert "203.0.113.1" in outcome.failure and "unicast" in outcome.failure


def test_root_file_that_is_not_a_certificate_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no certificate")
    outcome = run(tmp_path / "run", roots=(str(path),))
    assert never_began(outcome)
    assert outcome.failure == f"{path} is not a certificate: choose a file with the COER octets of a root CA's."


def test_token_that_is_not_configured_is_named(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", launcher=PROCESSES, token="office", signing="token")
    assert never_began(outcome) and outcome.failure is not None
    assert outcome.failure.startswith("No token is called office")


@pytest.mark.parametrize("role", ["receiver", pytest.param("stations-1-6", marks=pytest.mark.nightly)])
def test_killed_role_fails_the_run_and_its_samples_are_kept(tmp_path: Path, role: str) -> None:
    """Nightly: alone finds that the kill of a sender counts its last CAMs as lost; that of the receiver stays in CI."""

    def kill(lab: LiveLab) -> None:
        lab.until("accepted", 160)
        lab.kill(role)

    outcome = LiveLab(tmp_path / "run", launcher=PROCESSES, during=kill).run(**LONG)
    assert outcome.failure is not None and outcome.failure.startswith(f"Role {role} was killed")
    assert outcome.figures["sent"] > 120 < outcome.figures["accepted"]
    assert (outcome.figures["lost"], outcome.verdicts["no packet was lost"]) == (0, "pass"), "up to then"
    assert next(read_capture(outcome.capture(tmp_path / "capture.pcapng"))).octets


def rate_until_the_end(samples: Samples, begin_ns: int) -> float:
    """CAMs a second in the time that counts, from the samples: without warm-up and the receiver's last 0.5 s.

    It is about `RATE`; a busy machine, which sends late, has less, but far more than the 4 that 60 s would give.
    """
    from_ns = begin_ns + round(LONG["warm_up"] * 1e9)
    until_ns = int(samples.table("queue", "receiver")["t_ns"].max()) - QUIET_NS
    due_ns = samples.table("sent", "stations-1-6")["due_ns"]
    rate = int(np.count_nonzero((due_ns >= from_ns) & (due_ns < until_ns))) * 1e9 / (until_ns - from_ns)
    assert RATE / 3 < rate < 1.1 * RATE
    return rate


def test_cancelled_run_counts_the_time_that_it_took_and_claims_no_loss(tmp_path: Path) -> None:
    def cancel(lab: LiveLab) -> None:
        lab.until("accepted", 240)
        lab.cancel()

    outcome = LiveLab(tmp_path / "run", during=cancel).run(**LONG)
    assert outcome.failure is None
    assert 240 <= outcome.figures["accepted"] < 2400
    rate = rate_until_the_end(outcome.samples, outcome.begin_ns)
    assert outcome.figures["accept_rate"] == pytest.approx(rate), "of the seconds that it took, not of 60"
    assert outcome.figures["send_rate"] == pytest.approx(rate)
    assert (outcome.figures["lost"], outcome.verdicts["no packet was lost"]) == (0, "pass")
    curves = LiveTrial().curves(outcome.parameters, outcome.samples, outcome.samples.events)
    assert {curve.title for curve in curves} >= {"Sent", "Accepted", "p99", "Loss"}
    assert all(curve.t_s.max() < 30 for curve in curves)


class EarlyLab(LiveLab):
    """`during` is called before the roles have their tickets."""

    def _await_begin(self) -> bool:
        while len(self.started) < 2 and not self._over.wait(0.001):
            pass
        return True


def test_run_that_is_cancelled_before_it_has_tickets_ends_without_a_fault(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = EarlyLab(tmp_path / "run", during=EarlyLab.cancel).run(**LONG)
    assert outcome.failure is None or outcome.failure.startswith("Cancelled while role ")
    assert not outcome.events_named("T0")
    assert "Traceback" not in "".join(capfd.readouterr())


def test_interrupted_run_is_kept_and_marked(tmp_path: Path) -> None:
    """kill -9 of its worker in mid-run: the console evaluates what was recorded, and the capture is there."""
    bench = Bench(tmp_path)
    try:
        [run_id] = bench.submit({**LONG, **own_transport()}, kind="v2x.live")
        bench.pump_until(lambda: any(accepted(frame) > 200 for _, frame in bench.listener.frames))
        owner = bench.detail(run_id).row.owner
        assert owner is not None
        os.kill(owner.pid, signal.SIGKILL)
        bench.pump_until_idle()
        found = bench.detail(run_id)
    finally:
        bench.close()
    assert found.row.status is RunStatus.INTERRUPTED and "killed" in found.row.reason
    figures = {name: metric.value for name, metric in found.row.metrics.items()}
    [begin] = [event for event in found.events if event.name == "T0"]
    with Reader(bench.database) as reader:
        (kept,) = reader.attachments(run_id).all()
        rate = rate_until_the_end(reader.samples(run_id), begin.data["begin_ns"])
    assert figures["accepted"] > 120 and figures["accept_rate"] == pytest.approx(rate)
    assert {verdict.name: verdict.result for verdict in found.verdicts}["no packet was lost"] == "pass"
    capture = write_run_capture(bench.database, None, "v2x.live", tmp_path)
    assert (capture.run_id, capture.awaited) == (run_id, False) and capture.path is not None
    assert len(list(read_capture(capture.path))) > 120, "up to the last whole packet"
    assert kept.sha256 is None, "it is marked as cut"


def test_capture_is_written_up_to_its_last_whole_packet() -> None:
    """It is read while it is written, and a run may have been killed in the middle of a block."""
    blocks = [capture_header(["lo"]), *(packet_block(number, bytes(number)) for number in (14, 15, 90))]
    whole = b"".join(blocks)
    ends = [sum(map(len, blocks[:count])) for count in range(len(blocks) + 1)]
    for size in range(len(blocks[0]), len(whole) + 1):
        file = BytesIO()
        rest, packets = _write_blocks(file, whole[:size])
        whole_blocks = [end for end in ends if end <= size]
        assert (len(file.getvalue()), packets) == (whole_blocks[-1], len(whole_blocks) - 2)
        assert file.getvalue() + rest == whole[:size]


def accepted(frame: Any) -> int:
    return frame.channels["accepted"].count if "accepted" in frame.channels else 0


def test_run_that_waits_is_not_the_one_whose_capture_is_meant(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    try:
        bench.queue.pause()
        [waiting] = bench.submit({}, kind="v2x.live")
        assert write_run_capture(bench.database, None, "v2x.live", tmp_path) == RunCapture()
        bench.queue.cancel(waiting)
    finally:
        bench.close()


def test_run_without_capture_has_none(stored_run: Path, tmp_path: Path) -> None:
    with Reader(stored_run) as reader:
        assert reader.run(1).row.status is RunStatus.FINISHED
    assert write_run_capture(stored_run, None, "v2x.live", tmp_path) == RunCapture(1)
