"""Live values by role: counts, gauges and states, undeclared ones, large ones, and frames that are not read."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from labconsole.clock import now_ns
from labconsole.engine.protocol import ChannelFrame, LiveFrame, RoleValues, decode_line, encode_line
from labconsole.engine.role import STATE_BYTES, RoleLive
from labconsole.errors import UserError
from labconsole.store.records import RunDetail, RunStatus
from tests.helpers.practice import STATIONS, Bench

FAULTS = {
    "undeclared gauge": "The live channel secret gauge is not declared: add it to `live` of the trial.",
    "undeclared state": "The live channel secret state is not declared: add it to `live` of the trial.",
    "gauge as total": "The live channel sent is declared as a total and reported as a gauge: change one of them.",
    "large state": "The live state of role station-0 (heard) has 7,311 bytes, and 4,096 at most are shown: "
    "report less.",
    "odd state": "The live state heard of role station-0 is not plain JSON: "
    "Object of type set is not JSON serializable.",
}


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory, practice_plugin: Path) -> Iterator[dict[str, RunDetail]]:
    """A run of one station for each fault."""
    bench = Bench(tmp_path_factory.mktemp("faults"), in_threads=True)
    scenarios = [{"fault": fault, "duration": 600.0} for fault in FAULTS]
    yield dict(zip(FAULTS, bench.run(*scenarios, kind=STATIONS, stations=1), strict=True))
    bench.close()


@pytest.mark.parametrize("fault", FAULTS)
def test_values_that_a_trial_does_not_declare_or_that_are_too_large_fail_the_run(
    failed: dict[str, RunDetail], fault: str
) -> None:
    assert (failed[fault].row.status, failed[fault].row.reason) == (RunStatus.FAILED, FAULTS[fault])


def test_frames_carry_the_newest_values_of_each_role(thread_bench: Bench) -> None:
    [run_id] = thread_bench.submit({}, kind=STATIONS, stations=3, duration=1.5, rate=200.0)
    thread_bench.pump_until_idle()
    assert thread_bench.detail(run_id).row.status is RunStatus.FINISHED, thread_bench.detail(run_id).row.reason
    frames = [frame for _, frame in thread_bench.listener.frames]
    last = frames[-1]
    stations = ["station-0", "station-1", "station-2"]
    assert sorted(last.by_role.roles) == stations
    counts = last.by_role.counts["sent"]
    assert sum(counts.values()) == last.channels["sent"].count > 0
    assert last.by_role.gauges["rate"] == dict.fromkeys(stations, 200.0)
    for station in stations:
        others = [other for other in stations if other != station]
        state = last.by_role.state("heard", station)
        assert state == {"hears": others, "heard_count": 2, "sent": counts[station]}
    series = [frame.by_role.counts["sent"].get("station-1", 0) for frame in frames if frame.by_role.counts]
    assert series == sorted(series) and len(set(series)) > 4
    assert last.by_role.state("heard", "station-7") == {}


def test_blocked_window_gets_only_the_newest_frame(thread_bench: Bench) -> None:
    [run_id] = thread_bench.submit({}, kind=STATIONS, stations=1, duration=4.0, rate=200.0)
    thread_bench.pump_until(lambda: any(frame.by_role.gauges.get("rate") for _, frame in thread_bench.listener.frames))
    before = thread_bench.listener.frames[-1][1].by_role.state("heard", "station-0")["sent"]
    seen = len(thread_bench.listener.frames)
    time.sleep(1.5)
    thread_bench.queue.pump()
    [(_, frame)] = thread_bench.listener.frames[seen:]
    assert now_ns() - frame.t_ns < 1e9
    assert frame.by_role.state("heard", "station-0")["sent"] > before + 100, "the station went on sending"
    thread_bench.queue.cancel(run_id)
    thread_bench.pump_until_idle()


def test_gauges_and_states_are_reported_ten_times_a_second_at_most() -> None:
    live = RoleLive("station-0")
    live.gauge("rate", 1.0)
    live.state("heard", {"hears": ["a"]})
    first = live.message()
    live.gauge("rate", 2.0)
    live.count("sent", 5, None)
    soon = live.message()
    assert soon["gauges"] == first["gauges"] == {"rate": 1.0}
    assert soon["states"] == first["states"] == {"heard": '{"hears":["a"]}'}
    assert soon["channels"]["sent"][0] == 5, "counts are those of the moment"
    assert live.message(last=True)["gauges"] == {"rate": 2.0}
    live.gauge("rate", 3.0)
    time.sleep(0.11)
    assert live.message()["gauges"] == {"rate": 3.0}


def test_a_state_may_be_made_when_it_is_reported() -> None:
    """Each report has the next part of what is too large for one; between reports none is made."""
    parts = iter(range(10))
    live = RoleLive("station-0")
    live.state("heard", lambda: {"part": next(parts)})
    reported = [live.message()["states"]["heard"]]
    for _ in range(5):
        reported.append(live.message()["states"]["heard"])
    reported.append(live.message(last=True)["states"]["heard"])
    assert reported == [*['{"part":0}'] * 6, '{"part":1}']


def test_the_states_of_a_role_together_have_a_limit() -> None:
    live = RoleLive("station-0")
    room = STATE_BYTES - len('{"a":""}') - len('{"b":""}')
    live.state("one", {"a": "x" * 100})
    live.state("other", {"b": "x" * (room - 100)})
    assert set(live.message()["states"]) == {"one", "other"}
    live.state("other", {"b": "x" * (room - 99)})
    with pytest.raises(UserError, match=r"The live state of role station-0 \(one, other\) has 4,097 bytes"):
        live.message(last=True)
    live.count("sent", 1, None)
    assert live.message(last=True)["channels"]["sent"][0] == 1, "the last counts are reported all the same"


def test_a_state_in_letters_that_no_encoding_has_is_a_fault_of_the_role() -> None:
    live = RoleLive("station-0")
    live.state("heard", {"name": "\ud800"})
    with pytest.raises(UserError, match="The live state heard of role station-0 is not plain JSON"):
        live.message()


def test_values_by_role_survive_the_way_over_the_pipe() -> None:
    values = RoleValues({"sent": {"a": 1}}, {"rate": {"a": 2.5}}, {"heard": {"a": '{"hears":["b"]}'}})
    frame = LiveFrame(1, None, 0, 0, {"sent": ChannelFrame(1)}, {}, "sent", values)
    message = decode_line(encode_line(frame.to_json()))
    assert message is not None and LiveFrame.from_json(message).by_role == values


def test_a_frame_without_values_by_role_is_as_short_as_before() -> None:
    frame = LiveFrame(1, None, 0, 0, {"sent": ChannelFrame(1)}, {})
    assert set(json.loads(encode_line(frame.to_json()))) == {
        *("t", "t_ns", "begin_ns", "done", "total", "channels", "usage", "progress")
    }
