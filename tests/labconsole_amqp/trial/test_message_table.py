"""Every message's latency among what is exported: one row per message, which agrees with the figures."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial import message_table
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.trial.joining import load_joined
from labconsole_amqp.trial.message_table import MESSAGES
from tests.helpers.spool_samples import SpoolSamples
from tests.labconsole_amqp.command_line import run_command
from tests.labconsole_amqp.embedded_broker import serving
from tests.labconsole_amqp.lab import Outcome, run


def table(outcome: Outcome) -> dict[str, NDArray[Any]]:
    """The one table that the trial derives from a run."""
    (derived,) = AmqpTrial().derived(outcome.parameters, outcome.samples, outcome.samples.events)
    parts = list(derived.parts())
    assert {tuple(part) for part in parts} == {tuple(column.name for column in derived.series.columns)}
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    assert derived.rows == len(columns["sender"])
    return columns


@pytest.mark.parametrize("settings", ({}, {"loop": "open", "rate": 2000.0}, {"numbered": True, "senders": 2}))
def test_each_message_sent_has_its_latency(settings: dict[str, Any], tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", test=1, count=100, warm_up=20, **settings)
    rows, figures = table(outcome), outcome.figures
    assert len(rows["sender"]) == figures["sent"]
    assert len(set(zip(rows["sender"].tolist(), rows["sequence"].tolist(), strict=True))) == figures["sent"]
    assert set(rows["outcome"].tolist()) == {0}
    assert (rows["received_ns"] >= rows["sent_ns"]).all()
    prefix = "latency" if "loop" in settings else "queue_time"
    counted = rows["latency_ns"][rows["sequence"] >= 20] / 1e6
    assert (counted.min(), counted.max()) == (figures[f"{prefix}_min"], figures[f"{prefix}_max"])
    assert counted.mean() == pytest.approx(figures[f"{prefix}_mean"])


def test_a_lost_message_has_no_latency(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", test=1, count=50, numbered=True)
    (received,) = (block for (name, _), block in outcome.samples.tables.items() if name == "received")
    kept = np.concatenate([block["number"] for block in received]) & 0xFF != 7
    received[:] = [{name: np.concatenate([block[name] for block in received])[kept] for name in received[0]}]
    rows = table(outcome)
    assert np.flatnonzero(rows["received_ns"] == -1).tolist() == [7]
    assert (rows["latency_ns"][7], rows["outcome"][7]) == (-1, -1)
    assert (np.delete(rows["latency_ns"], 7) > 0).all()


def test_a_console_that_plays_one_end_has_what_it_knows(tmp_path: Path) -> None:
    with serving(BrokerSettings(queues=("q",))) as broker:
        shared = {"broker": "external", "port": broker.plain.port, "address": "q", "numbered": True, "count": 30}
        sender = table(run(tmp_path / "sender", mode="sender", **shared))
        outcome = run(tmp_path / "receiver", mode="receiver", **shared)
    assert set(sender["received_ns"].tolist()) == set(sender["outcome"].tolist()) == {-1}
    rows = table(outcome)
    assert rows["sequence"].tolist() == list(range(30))
    assert set(rows["sender"].tolist()) == {0}
    assert set(rows["sent_ns"].tolist()) == {-1}
    assert rows["latency_ns"].max() / 1e6 == outcome.figures["queue_time_max"]


def test_a_run_without_messages_has_no_table(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", broker="external", host="no-such-host.invalid", count=5)
    assert AmqpTrial().derived(outcome.parameters, outcome.samples, outcome.samples.events) == ()


def test_the_export_holds_the_table_of_messages(
    own_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "one.toml"
    profile.write_text('format = 1\nkind = "amqp.messaging"\n[parameters]\ntest = 1\ncount = 300\n')
    database = ("--db", str(tmp_path / "runs.db"))
    done = run_command(capsys, "run", str(profile), "--json", *database)
    assert done.code == run_command(capsys, "export", "1", "--csv", str(tmp_path / "csv"), *database).code == 0
    with (tmp_path / "csv" / "samples-messages.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file, strict=True))
    assert header == [f"{column.name} [{column.unit}]" if column.unit else column.name for column in MESSAGES.columns]
    assert [row[:2] for row in rows] == [["0", str(sequence)] for sequence in range(300)]
    largest_ms = json.loads(done.out)["metrics"]["queue_time_max"]["value"]
    assert max(int(row[header.index("latency_ns [ns]")]) for row in rows) / 1e6 == largest_ms


def parts(table: dict[str, NDArray[Any]], size: int) -> list[dict[str, NDArray[Any]]]:
    """The table as a store holds it."""
    rows = len(next(iter(table.values())))
    return [{name: column[first : first + size] for name, column in table.items()} for first in range(0, rows, size)]


@pytest.mark.parametrize("numbered", (False, True))
def test_blocks_give_the_same_rows_as_the_whole_run(numbered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_table, "BLOCK_ROWS", 300)
    random = np.random.default_rng(7)
    count, senders = 2_000, 2 if numbered else 1
    parameters = AmqpParameters(test=1, count=count, numbered=numbered, senders=senders)
    place = np.arange(count)
    sent_ns, stamp_ms = place * 100_000, place // 7
    tables: dict[tuple[str, str], list[dict[str, NDArray[Any]]]] = {}
    for sender in range(senders):
        mine = place[sender::senders]
        sent = {
            "seq": mine // senders,
            "intended_ns": sent_ns[mine] - 5,
            "sent_ns": sent_ns[mine],
            "stamp_ms": stamp_ms[mine],
        }
        rest = {name: np.zeros(len(mine), np.int32) for name in ("size", "sign_ns", "encrypt_ns")}
        tables["sent", f"sender-{sender}"] = parts(sent | rest, 64)
    # Some are missing, some arrive twice or out of order, some are refused, some are unknown.
    came = np.concatenate([place[random.random(count) > 0.05], random.integers(0, count, 80)])
    came = came[np.argsort(came + random.normal(0, 40, len(came)), kind="stable")]
    number = (came % senders + 1 << 40) + came // senders if numbered else np.full(len(came), -1)
    foreign = random.random(len(came)) < 0.01
    received = {
        "number": np.where(foreign, -1, number),
        "received_ns": 500_000_000 + np.arange(len(came)) * 130_000,
        "stamp_ms": np.where(foreign, 1 << 60, stamp_ms[came]),
        "outcome": (random.random(len(came)) < 0.03).astype(np.uint8),
    }
    rest = {name: np.zeros(len(came), np.int32) for name in ("size", "verify_ns", "decrypt_ns")}
    tables["received", "receiver-0"] = parts(received | rest, 50)
    samples = SpoolSamples(tables)
    (derived,) = message_table.message_tables(parameters, samples, ())
    in_blocks = list(derived.parts())
    assert len(in_blocks) > 3
    assert max(len(part["sequence"]) for part in in_blocks) < 600
    rows = {name: np.concatenate([part[name] for part in in_blocks]) for name in in_blocks[0]}
    whole = message_table._sent(parameters, load_joined(parameters, samples))
    order = np.lexsort((rows["sequence"], rows["sender"]))
    expected = np.lexsort((whole["sequence"], whole["sender"]))
    assert {-1, 0, 1} == set(rows["outcome"].tolist())
    for name, column in whole.items():
        assert (rows[name][order] == column[expected]).all(), name
