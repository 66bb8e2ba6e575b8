"""Published figures: every number as its source prints it, and the fault of a malformed file is one sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from labconsole.analysis import published_figures
from labconsole.analysis.published_figures import (
    PublishedTable,
    PublishedVerdict,
    published_columns,
    published_tables,
)
from labconsole.errors import UserError
from labconsole.model.plugin import Plugin, Plugins

SOURCE = Path(__file__).resolve().parents[4] / "shared" / "sources" / "swim-wp16.txt"
ROWS = {
    "Establishing Connection": "connect_time",
    "Sender Duration": "send_duration",
    "Message Sending Rate": "send_rate",
    "Sender Message Size": "sent_size",
    "Establishing Receiver Link": "receiver_link_time",
    "Receiver Duration": "receive_duration",
    "Received Message Size": "received_size",
    "Message Throughput": "throughput",
    "Average Latency": "queue_time_mean",
}
TABLES = {
    f"swim-{place}-{size.lower()}": f"{heading}: {size} Payload"
    for place, heading in (("within-malaysia", "Within Malaysia"), ("my-sg", "MY to SG"))
    for size in ("Small", "Medium", "Large")
}
UNITS = {"ms": "ms", "msg / sec": "msg/s", "bytes": "B", "seconds": "s"}

GOOD = """
format = 1
title = "A source"
kinds = ["amqp.messaging"]
[units]
"ms" = { unit = "ms" }
"seconds" = { unit = "ms", factor = 1000 }
[columns.plain]
title = "Plain"
parameters = { test = 1 }
[[tables]]
name = "a-table"
title = "A table"
reference = "Table 1"
parameters = { payload = "small" }
known = { count = 500 }
columns = ["plain"]
[tables.figures]
latency_mean = ["1,234.5 seconds"]
connect_time = ["-"]
[tables.verdicts]
"F-1" = ["passed"]
"F-2" = ["-"]
"F-3" = ["not tested"]
"""


@pytest.fixture(scope="module")
def swim() -> Mapping[str, PublishedTable]:
    return {table.name: table for table in published_tables(Plugins.discover()) if "amqp.messaging" in table.kinds}


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugins:
    """Plugins with the trials of two sources, and the file `good` of the test's own folder."""
    monkeypatch.setattr(published_figures, "resource", lambda *parts: tmp_path / parts[-1])
    (tmp_path / "good.toml").write_text(GOOD)
    plugins = Plugins.discover()
    amqp, keypool = (plugins.of_kind(kind) for kind in ("amqp.messaging", "keypool.simulation"))
    return Plugins((replace(amqp, published=("good",)), replace(keypool, published=())))


def _from_source(heading: str) -> dict[str, list[str]]:
    """Metric -> the cells of its row in the table under `heading`, as the text has them."""
    section = SOURCE.read_text(encoding="utf-8").split(f"# {heading}\n")[1].split("\n# ")[0]
    lines = [line.split("\t") for line in section.splitlines() if "\t" in line]
    return {ROWS[title.strip()]: [cell.strip() for cell in cells] for title, *cells in lines if title.strip()}


@pytest.mark.skipif(not SOURCE.exists(), reason="the source's text is not next to the checkout")
def test_every_number_of_the_source_is_there_and_no_other(swim: Mapping[str, PublishedTable]) -> None:
    assert list(swim) == list(TABLES)
    numbers = 0
    for name, heading in TABLES.items():
        printed = _from_source(heading)
        assert len(printed) == 9
        found = {
            (metric, int(column.name[-1])): figure
            for column in swim[name].columns
            for metric, figure in column.figures.items()
        }
        for metric, cells in printed.items():
            for test, cell in enumerate(cells, start=1):
                figure = found.pop((metric, test), None)
                if cell == "-":
                    assert figure is None
                    continue
                number, unit = re.fullmatch(r"([\d.,]+) (.+)", cell).groups()  # type: ignore[union-attr]
                assert figure is not None, (name, metric, test)
                assert (figure.printed, figure.unit) == (cell, UNITS[unit])
                assert figure.value == float(number.replace(",", ""))
                assert heading in figure.reference
                numbers += 1
        assert not found
    assert numbers == 189


@pytest.mark.parametrize(
    ("place", "metric", "value", "unit"),
    [
        ("swim-within-malaysia-small/test-1", "throughput", 1425.11, "msg/s"),
        ("swim-within-malaysia-small/test-2", "send_duration", 6890, "ms"),
        ("swim-within-malaysia-small/test-4", "queue_time_mean", 8501.42, "ms"),
        ("swim-within-malaysia-medium/test-2", "receiver_link_time", 33, "ms"),
        ("swim-within-malaysia-medium/test-3", "received_size", 717, "B"),
        ("swim-within-malaysia-large/test-1", "queue_time_mean", 209385, "ms"),
        ("swim-within-malaysia-large/test-4", "receive_duration", 189, "s"),
        ("swim-my-sg-small/test-2", "connect_time", 220, "ms"),
        ("swim-my-sg-small/test-4", "sent_size", 903, "B"),
        ("swim-my-sg-medium/test-4", "received_size", 1127, "B"),
        ("swim-my-sg-large/test-2", "send_rate", 3, "msg/s"),
        ("swim-my-sg-large/test-3", "throughput", 3.32, "msg/s"),
    ],
)
def test_spot_values(place: str, metric: str, value: float, unit: str) -> None:
    (column,) = published_columns(Plugins.discover(), place)
    figure = column.figures[metric]
    assert (figure.value, figure.unit) == (value, unit)


@pytest.mark.parametrize(
    "kind",
    [
        "amqp.messaging",
        "keypool.simulation",
        "keypool.signing-service",
        "keypool.step-times",
        "keypool.device-benchmark",
    ],
)
def test_figures_are_in_the_units_of_the_trials_metrics(kind: str) -> None:
    plugins = Plugins.discover()
    units = {metric.name: metric.unit for metric in plugins.trial(kind).metrics}
    tables = [table for table in published_tables(plugins) if kind in table.kinds]
    assert tables
    for table in tables:
        for column in table.columns:
            assert {name: figure.unit for name, figure in column.figures.items()} == {
                name: units[name.partition("{")[0]] for name in column.figures
            }


def test_what_is_not_printed_is_absent(swim: Mapping[str, PublishedTable]) -> None:
    """From Malaysia to Singapore there was no Test 1: its column of dashes is left out."""
    assert [column.name for column in swim["swim-my-sg-small"].columns] == [
        f"swim-my-sg-small/test-{test}" for test in (2, 3, 4)
    ]


def test_a_run_is_of_the_same_scenario_by_test_and_payload_whatever_its_count() -> None:
    (column,) = published_columns(Plugins.discover(), "swim-within-malaysia-medium/test-3")
    run = {"test": 3, "payload": "fpl-tac", "count": 4000}
    assert column.fits(run), "a run of before message sizes were drawn"
    assert column.fits({**run, "message_sizes": "payload"})
    assert not column.fits({**run, "message_sizes": "uniform"})
    assert not column.fits({**run, "test": 2, "count": 10_000})
    assert not column.fits({"payload": "fpl-tac"})
    assert column.known["count"] == 10_000


def test_table_name_selects_all_columns_and_wrong_name_lists_the_known_ones() -> None:
    plugins = Plugins.discover()
    assert len(published_columns(plugins, "swim-my-sg-large")) == 3
    with pytest.raises(UserError, match=r"swim-my-sg-larg; did you mean swim-my-sg-large\?$"):
        published_columns(plugins, "swim-my-sg-larg")
    with pytest.raises(UserError, match=r"swim-my-sg-large has no column test-1; .*swim-my-sg-large/test-2, "):
        published_columns(plugins, "swim-my-sg-large/test-1")


def test_a_printed_unit_is_converted_to_the_metrics(written: Plugins) -> None:
    (table,) = published_tables(written)
    (column,) = table.columns
    assert column.figures.keys() == {"latency_mean"}
    figure = column.figures["latency_mean"]
    assert (figure.value, figure.unit, figure.printed) == (1_234_500.0, "ms", "1,234.5 seconds")
    assert figure.reference == "A source, Table 1"
    assert (column.parameters, column.known) == ({"payload": "small", "test": 1}, {"count": 500})


def test_verdicts_have_the_results_of_runs_and_their_place_in_the_source(written: Plugins) -> None:
    (column,) = published_columns(written, "a-table")
    assert column.verdicts == {
        "F-1": PublishedVerdict("pass", "passed", "A source, Table 1"),
        "F-3": PublishedVerdict("not tested", "not tested", "A source, Table 1"),
    }


def test_a_table_may_have_verdicts_alone_and_must_have_something(written: Plugins, tmp_path: Path) -> None:
    bare = GOOD.partition("[tables.figures]")[0]
    (tmp_path / "good.toml").write_text(bare + '[tables.verdicts]\n"F-1" = ["failed"]\n')
    (column,) = published_columns(written, "a-table")
    assert (dict(column.figures), column.verdicts["F-1"].result) == ({}, "fail")
    (tmp_path / "good.toml").write_text(bare)
    with pytest.raises(UserError, match=r"table a-table has neither figures nor verdicts; add \[tables\.figures\] or"):
        published_tables(written)


def test_a_plugin_brings_a_file_in_its_own_package(
    written: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "their_package").mkdir()
    (tmp_path / "their_package" / "source.toml").write_text(GOOD)
    monkeypatch.syspath_prepend(str(tmp_path))
    amqp, _ = written.found
    plugins = Plugins((replace(amqp, published=("their_package:source",)),))
    assert [table.name for table in published_tables(plugins)] == ["a-table"]
    for name, sentence in (
        ("their_package:sauce", r"their_package:sauce\.toml: .*sauce\.toml is missing\.$"),
        ("no_package:source", r"no_package:source\.toml: there is no package no_package\.$"),
        ("no_package.inside:source", r"there is no package no_package\.inside\.$"),
        ("json.decoder:source", r"there is no package json\.decoder\.$"),
    ):
        with pytest.raises(UserError, match=sentence):
            published_tables(Plugins((replace(amqp, published=(name,)),)))


LIVE_AND_SIMULATED = """
format = 1
title = "A source"
kinds = ["keypool.simulation", "keypool.signing-service"]
[units]
"requests" = { unit = "requests" }
"1/s" = { unit = "requests/s" }
[columns.fast]
title = "Fast"
parameters = { rate = 40 }
[[tables]]
name = "a-table"
title = "A table"
reference = "Table 1"
known = { threads = 2, token = "lab" }
columns = ["fast"]
[tables.figures]
dropped = ["12 requests"]
"got_key{source=pool}" = ["30 requests"]
"""


def test_figures_may_be_of_two_trials_and_carry_labels(written: Plugins, tmp_path: Path) -> None:
    """What the source used besides need be a parameter of one of them only: the simulation knows no token."""
    (tmp_path / "good.toml").write_text(LIVE_AND_SIMULATED)
    (table,) = published_tables(written)
    (column,) = table.columns
    assert table.kinds == column.kinds == ("keypool.simulation", "keypool.signing-service")
    assert column.parameters == {"rate": 40.0}
    assert column.known == {"threads": 2, "token": "lab"}
    assert {name: figure.value for name, figure in column.figures.items()} == {
        "dropped": 12,
        "got_key{source=pool}": 30,
    }


def test_two_trials_that_differ_in_a_unit_need_two_files(written: Plugins, tmp_path: Path) -> None:
    mixed = LIVE_AND_SIMULATED.replace("keypool.signing-service", "keypool.step-times").replace("rate = 40", "")
    mixed = mixed.replace('dropped = ["12 requests"]', 'throughput = ["5 1/s"]').replace(', token = "lab"', "")
    (tmp_path / "good.toml").write_text(mixed.partition('"got_key')[0])
    with pytest.raises(UserError, match=r"throughput is in requests/s and keys/s; give each trial a file of its own"):
        published_tables(written)


@pytest.mark.parametrize(
    ("right", "wrong", "sentence"),
    [
        ("format = 1", "format = 2", "has format 2; this console reads `format = 1`."),
        ("[units]", "[units", "is not valid TOML"),
        ("known =", "knwon =", "there is no key tables.0.knwon; did you mean known?"),
        ("amqp.messaging", "amqp.mesaging", "there is no trial amqp.mesaging; did you mean amqp.messaging?"),
        (
            "latency_mean",
            "latency_men",
            "amqp.messaging has no metric latency_men; did you mean latency_mean?",
        ),
        (
            '["amqp.messaging"]',
            '["amqp.messaging", "keypool.step-times"]',
            "keypool.step-times has no metric connect_time",
        ),
        ("1,234.5 seconds", "about 5 s", 'latency_mean is "about 5 s"; write a number and its unit'),
        ("1,234.5 seconds", "12,34 seconds", 'latency_mean is "12,34 seconds"; write a number and its unit'),
        ("1,234.5 seconds", "5 minutes", '[units] does not say what "minutes" is.'),
        ('unit = "ms", factor', 'unit = "s", factor', "latency_mean is in ms, and by [units] seconds are s."),
        ('["-"]', '["-", "-"]', "connect_time has 2 figures for 1 columns"),
        ('columns = ["plain"]', 'columns = ["plane"]', "there is no column plane; did you mean plain?"),
        ("count = 500", "count = 0", "column plain: count:"),
        ("test = 1", "tset = 1", "there is no key tset; did you mean test?"),
        ('["passed"]', '["ok"]', 'F-1 is "ok"; write one of "passed", "failed", "not tested" or "-".'),
        ('["passed"]', '["passed", "-"]', 'F-1 has 2 verdicts for 1 columns; write "-" for one that is not printed.'),
        ('["passed"]', "[true]", "tables.0.verdicts.F-1.0"),
        ("[tables.verdicts]", "[tables.verdict]", "there is no key tables.0.verdict; did you mean verdicts?"),
    ],
)
def test_fault_in_a_published_file_is_one_sentence(
    written: Plugins, tmp_path: Path, right: str, wrong: str, sentence: str
) -> None:
    assert right in GOOD
    (tmp_path / "good.toml").write_text(GOOD.replace(right, wrong))
    with pytest.raises(UserError) as raised:
        published_tables(written)
    message = str(raised.value)
    assert message.startswith("Published figures good.toml")
    assert sentence in message
    assert "\n" not in message


def test_duplicate_table_name_and_missing_file_are_reported(written: Plugins) -> None:
    amqp, _ = written.found
    with pytest.raises(UserError, match="another table a-table; rename one"):
        published_tables(Plugins((replace(amqp, published=("good", "good")),)))
    with pytest.raises(UserError, match=r"Published figures nowhere\.toml"):
        published_tables(Plugins((Plugin(name="x", title="x", description="x", published=("nowhere",)),)))
