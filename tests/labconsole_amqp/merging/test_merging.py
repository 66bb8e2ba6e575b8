"""Two consoles with clocks of their own play one trial over a real broker; their runs merge into one."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from labconsole.cli.exit_codes import CHECK_FAILED, FINISHED
from labconsole.clock_comparison import COMPARED, HOST_COMPARED, ClockComparison, Offset, host_offsets
from labconsole.errors import UserError
from labconsole.model.metrics import Verdict
from labconsole.model.operation import OperationContext
from labconsole.model.series import Event, Level
from labconsole.store.encoding import sha256_hex
from labconsole.store.evidence.checking import verify
from labconsole.store.evidence.sealing import seal
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail
from labconsole.store.run_store import Store
from labconsole_amqp.link.connection import Endpoint, connect
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.merging.merge_operation import MergeParameters, MergeRuns, newest_pair
from labconsole_amqp.merging.merged_samples import BothEnds, End
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.latency import clock_uncertainty_ns
from labconsole_amqp.wire.envelope_layout import layout_of
from tests.helpers.shared_once import shared_once
from tests.helpers.signals import interruptible
from tests.labconsole_amqp.merging.two_sites import DRIFT_PPM, Site, by_shifted_clock, finish
from tests.labconsole_amqp.real_broker import USER
from tests.labconsole_amqp.shared_rabbitmq import CLOCK_QUEUE, SharedRabbitmq

pytestmark = pytest.mark.timeout(600)
"""Two consoles, each a process with processes, are started by the first test."""

COUNT, TAKEN, SENT_TWICE = 800, 5, 2
_NO_CONTEXT = cast(OperationContext, None)
"""A merge reports nothing on its way."""


@contextmanager
def embedded() -> Iterator[tuple[Endpoint, dict[str, Any]]]:
    """`labconsole broker` as a process, which has clock queues for each queue."""
    command = [sys.executable, "-m", "labconsole.cli.main", "broker", "--port", "0", "--queue", "q"]
    with interruptible():
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline().partition("127.0.0.1:")[2].partition(",")[0])
        yield Endpoint("127.0.0.1", port), {"port": port, "address": "q"}
        process.send_signal(signal.SIGINT)
        assert "q.clock" in process.stdout.read()
    finally:
        process.kill()
        process.communicate()


def through_rabbitmq(rabbitmq: SharedRabbitmq) -> tuple[Endpoint, dict[str, Any]]:
    """RabbitMQ, with clock queues of another name."""
    broker = rabbitmq.broker
    login = {"username": USER, "password_file": str(broker.password_file)}
    place = {"address": rabbitmq.fresh_queue(), "clock_queue": broker.address(CLOCK_QUEUE), "port": broker.port}
    return broker.plain, {**place, **login}


ONE_BROKER = pytest.mark.parametrize("trial", ["embedded"], indirect=True)
"""For what does not depend on the broker."""


@dataclass(frozen=True)
class Trial:
    """Both consoles after a trial. The sender's database has its own run as 1, the other one as 2, and 3 of both."""

    sites: dict[str, Site]

    @classmethod
    def stored(cls, folder: Path) -> Trial:
        """The trial in a folder."""
        return cls({mode: Site(mode, folder) for mode in ("sender", "receiver")})

    @property
    def database(self) -> Path:
        return self.sites["sender"].database


def record_trial(folder: Path, in_threads: bool, endpoint: Endpoint, place: dict[str, Any]) -> None:
    """Play it and merge the runs. A third client takes messages out of the queue, and returns some of them twice."""
    sites = Trial.stored(folder).sites
    settings = {**place, "broker": "external", "test": 1, "count": COUNT, "loop": "open", "rate": 200.0}
    settings |= {"numbered": True, "patience": 3.0, "wait_for_peer": 60.0}
    runs = [sites["sender"].begin(settings, in_threads)]
    time.sleep(1)
    runs.append(sites["receiver"].begin(settings, in_threads))
    _disturb(endpoint, place["address"])
    finish(runs, (FINISHED, CHECK_FAILED))
    bundle = str(folder / "receiver.lcz")
    steps = (("receiver", "bundle", "1", bundle), ("sender", "import", bundle), ("sender", "merge", "2", "1"))
    for mode, *arguments in steps:
        sites[mode].command(*arguments)


@pytest.fixture(scope="module", params=["embedded", pytest.param("rabbitmq", marks=pytest.mark.nightly)])
def trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """It is played once per test run; tests that write copy its database.

    Nightly: RabbitMQ with consoles whose workers and roles are processes alone finds faults of clock queues of another
    broker, and of a clock that a role's process does not inherit; all else is judged in CI through the embedded one.
    """
    if request.param == "rabbitmq":
        place = through_rabbitmq(request.getfixturevalue("rabbitmq"))

    def record(folder: Path) -> None:
        if request.param == "rabbitmq":
            record_trial(folder, False, *place)
        else:
            with embedded() as at:
                record_trial(folder, True, *at)

    return Trial.stored(shared_once(tmp_path_factory, f"amqp-trial-{request.param}", record))


def _disturb(endpoint: Endpoint, address: str) -> None:
    with connect(endpoint) as connection:
        thief, taken = Receiver(connection, address, window=1), []
        while len(taken) < TAKEN:
            batch = thief.receive(1, 1.0)
            taken += batch.raw.values()
        thief.close()
        sender = Sender(connection, address)
        for message in taken[:SENT_TWICE] * 2:
            while not sender.capacity:
                sender.pump(0.1)
            sender.send_messages([message], layout_of(message).stamp.start)
        sender.drain(5)


def merged(trial: Trial) -> RunDetail:
    """The merged run, which the command has created."""
    with Reader(trial.database) as reader:
        return reader.run(3)


def figures(detail: RunDetail) -> dict[str, float]:
    return {one.name: one.value for one in detail.metrics if not one.labels}


def test_both_consoles_have_one_trial_id_and_the_same_offset_of_their_clocks(trial: Trial) -> None:
    ids, offsets = [], []
    for mode, site in trial.sites.items():
        with Reader(site.database) as reader:
            events = [event for event in reader.run(1).events if event.name == COMPARED]
        assert [event.data["phase"] for event in events] == ["before", "after"], mode
        ids += [event.data["trial"] for event in events]
        offsets.append([Offset.from_json(event.data) for event in events])
    assert len(set(ids)) == 1 and ids[0]
    assert offsets[0] == offsets[1]


def test_offset_and_drift_are_found_within_the_stated_uncertainty(trial: Trial) -> None:
    with Reader(trial.database) as reader:
        clocks = ClockComparison.of_events(reader.run(1).events)
    assert clocks is not None and clocks.after is not None
    for one in (clocks.before, clocks.after):
        true_ns = by_shifted_clock(one.sender_ns) - one.sender_ns
        assert abs(one.offset_ns - true_ns) <= one.uncertainty_ns
        assert one.exchanges >= 8
        assert abs(one.wall_ns - true_ns) <= one.uncertainty_ns + 1_000_000, "both wall clocks are one, shifted"
    gained = clocks.after.offset_ns - clocks.before.offset_ns
    span = clocks.after.sender_ns - clocks.before.sender_ns
    assert abs(gained - span * DRIFT_PPM / 1e6) <= 2 * clocks.uncertainty_ns


def test_the_merged_run_counts_lost_and_duplicated_messages_over_both(trial: Trial) -> None:
    found = figures(merged(trial))
    assert (found["sent"], found["lost"], found["duplicated"]) == (COUNT, TAKEN - SENT_TWICE, SENT_TWICE)
    assert (found["unknown"], found["failed_verifications"]) == (0, 0)
    assert found["received"] == COUNT - TAKEN + 2 * SENT_TWICE


def test_receivers_times_are_those_of_the_senders_clock_within_the_uncertainty(trial: Trial) -> None:
    detail = merged(trial)
    with Reader(trial.database) as reader:
        theirs = reader.samples(2).table("received", "receiver-0")["received_ns"]
        ours = reader.samples(3).table("received", "receiver-0")["received_ns"]
        sent = reader.samples(3).table("sent", "sender-0")
        first = reader.samples(1).table("sent", "sender-0")
    clocks = ClockComparison.of_events(detail.events)
    assert clocks is not None
    wrong = np.array([by_shifted_clock(t_ns) for t_ns in ours.tolist()]) - theirs
    assert np.abs(wrong).max() <= clocks.uncertainty_ns + 1
    assert all(np.array_equal(sent[name], first[name]) for name in first)
    found = figures(detail)
    assert found["clock_uncertainty"] == clocks.uncertainty_ns / 1e3
    within = {one.name: one.uncertainty for one in detail.metrics if one.uncertainty}
    assert {name.partition("_")[0] for name in within} == {"latency"}
    assert set(within.values()) == {clocks.uncertainty_ns / 1e6}, "in ms, as the latencies"
    assert 0 < found["latency_p50"] < 1000, "without correction it would be 7 s and more"


@ONE_BROKER
def test_hosts_of_one_name_at_both_consoles_are_two(trial: Trial) -> None:
    ends = []
    with Reader(trial.database) as reader:
        for run_id, uncertainty_ns in ((1, 1_000_000), (2, 2_000_000)):
            detail, samples = reader.run(run_id), reader.samples(run_id)
            data = {**Offset(0, uncertainty_ns, 0, 0, 0, 0, 8).to_json(), "host": "local-1", "phase": "before"}
            event = Event(detail.events[0].t_ns, "worker", Level.INFO, HOST_COMPARED, "", data)
            parameters = AmqpParameters.of_stored(detail.row.parameters)
            ends.append(End(replace(detail, events=(*detail.events, event)), samples, parameters))
    both = BothEnds.of(*ends)
    assert host_offsets(both.events).keys() == {"local-1", "local-1 of the receiver"}
    assert clock_uncertainty_ns(both.events) == 3_000_000 + both.clocks.uncertainty_ns


def test_latency_is_not_judged_where_the_clock_offset_is_too_uncertain_for_it(trial: Trial) -> None:
    """Both consoles are on one computer: the way through the broker is as short as that of an exchange."""
    detail = merged(trial)
    by_name = {one.name: one for one in detail.metrics}
    share = by_name["clock_uncertainty"].value / 1e3 / by_name["latency_p50"].value
    said = "the clock offset is uncertain" in by_name["latency_mean"].not_judged
    assert said is (share > 0.1)


def test_the_merged_run_names_both_runs_and_can_be_verified(trial: Trial) -> None:
    detail = merged(trial)
    with Reader(trial.database) as reader:
        assert verify(reader, 3).ok
        for number, end in ((1, "sender"), (2, "receiver")):
            evidence = reader.evidence(number)
            assert evidence is not None
            kept = detail.provenance[end]
            assert (kept["run"], kept["evidence"]) == (reader.run(number).row.uuid, evidence.digest)
            assert kept["host"] == reader.run(number).provenance["host"]
        assert {role.name for role in detail.roles} == {"sender-0", "receiver-0", "clock-sender", "clock-receiver"}
        assert len({role.clock_domain for role in detail.roles}) == 2
        assert {one.name for one in reader.artefacts(3)} >= {"sender.payload.sha256", "receiver.payload.sha256"}
    assert detail.row.parameters["mode"] == "both"
    assert {one.origin for one in detail.metrics} == {"measured"}
    assert any("Merged from run" in sentence for sentence in detail.warnings)
    checks = {one.name: one for one in detail.verdicts if one.kind == "preflight"}
    assert checks["preflight: trial id"].result == checks["preflight: clock offset"].result == "pass"


@ONE_BROKER
def test_a_second_merge_gives_the_same_run_in_either_order(trial: Trial, tmp_path: Path) -> None:
    _copy(trial, Site("sender", tmp_path).database)
    result = json.loads(Site("sender", tmp_path).command("merge", "1", "2", "--json"))
    assert (result["run"], result["new"]) == (3, False)
    with Reader(Site("sender", tmp_path).database) as reader:
        assert [row.id for row in reader.runs()] == [3, 2, 1]


@ONE_BROKER
def test_the_window_suggests_the_two_runs_of_one_trial(trial: Trial) -> None:
    assert newest_pair(trial.database) == (1, 2)
    assert newest_pair(trial.sites["receiver"].database) is None


def refused(database: Path, run: int, other: int) -> str:
    """The sentence of a merge that is refused and changes nothing."""
    with pytest.raises(UserError) as refusal:
        MergeRuns().run(MergeParameters(run=run, other=other, db=str(database)), _NO_CONTEXT)
    with Reader(database) as reader:
        assert max(row.id for row in reader.runs()) == 2
    return str(refusal.value)


def _copy(trial: Trial, copy: Path) -> None:
    """A copy of the sender's database with what is still in its write-ahead log."""
    with closing(sqlite3.connect(trial.database)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)


def _changed(trial: Trial, folder: Path, *statements: str) -> Path:
    """A copy of the database with both runs, changed and sealed again by someone who knows how."""
    copy = folder / "copy.db"
    _copy(trial, copy)
    with Store.open(copy) as store, store.writer.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM run WHERE id = 3")
        for statement in statements:
            connection.exec_driver_sql(statement)
        seal(connection, [1, 2])
    return copy


REFUSED = [
    (
        ["UPDATE scenario SET parameters = replace(parameters, '\"count\":800', '\"count\":900') WHERE id = 2"],
        "(count)",
    ),
    (
        [
            'UPDATE scenario SET parameters = replace(parameters, \'"envelope":"seed-2025"\', '
            '\'"envelope":"cms"\') WHERE id = 2'
        ],
        "(envelope)",
    ),
    (['UPDATE event SET data = replace(data, \'"trial":"\', \'"trial":"x\') WHERE run_id = 2'], "not two ends of one"),
    (
        ["UPDATE event SET data = replace(data, '\"offset_ns\":', '\"offset_ns\":1') WHERE run_id = 2"],
        "compared clocks in different sessions",
    ),
    (["DELETE FROM event WHERE name = 'clocks compared'"], "The trial id is missing"),
    (["UPDATE run SET status = 'cancelled' WHERE id = 2"], "both runs must have finished"),
]

SESSION = [sentence for _, sentence in REFUSED].index("compared clocks in different sessions")


@ONE_BROKER
@pytest.mark.parametrize(("statements", "sentence"), REFUSED, ids=[one[1] for one in REFUSED])
def test_runs_that_are_not_two_ends_of_one_trial_are_refused(
    trial: Trial, tmp_path: Path, statements: list[str], sentence: str
) -> None:
    copy = _changed(trial, tmp_path, *statements)
    with Reader(copy) as reader:
        unhashed = [fault for run in (1, 2) for fault in verify(reader, run).faults]
    if unhashed:  # a scenario has a hash of its own
        with closing(sqlite3.connect(copy)) as raw, raw:
            for number, text in raw.execute("SELECT id, parameters FROM scenario").fetchall():
                raw.execute("UPDATE scenario SET parameters_sha256 = ? WHERE id = ?", (sha256_hex(text), number))
    assert sentence in refused(copy, 1, 2)


@ONE_BROKER
def test_the_window_suggests_no_pair_of_different_sessions(trial: Trial, tmp_path: Path) -> None:
    """As where a trial was repeated with one trial id, and the other console's bundle is of another repeat."""
    copy = _changed(trial, tmp_path, REFUSED[SESSION][0][0])
    assert newest_pair(copy) is None


@ONE_BROKER
def test_one_run_twice_and_a_changed_run_are_refused(trial: Trial, tmp_path: Path) -> None:
    copy = _changed(trial, tmp_path)
    assert "choose one run of a console that plays the sender only" in refused(copy, 1, 1)
    with closing(sqlite3.connect(copy)) as raw, raw:
        raw.execute("UPDATE event SET t_ns = t_ns + 1 WHERE run_id = 2")
    assert "Run 2 is not as it was sealed" in refused(copy, 1, 2)


def _results(verdicts: tuple[Verdict, ...]) -> dict[str, str]:
    return {one.name: one.result for one in verdicts}


def test_a_run_that_lost_messages_fails_its_check_when_it_is_merged(trial: Trial) -> None:
    found = _results(merged(trial).verdicts)
    assert found["all messages arrived"] == found["no message arrived twice or from elsewhere"] == "fail"
