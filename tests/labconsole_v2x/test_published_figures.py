"""Published figures of PRESERVE D3.2: every number as its text prints it, and no other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from labconsole.analysis.published_figures import PublishedTable, published_columns, published_tables, same_scenario
from labconsole.model.plugin import Plugins
from labconsole_v2x.live.live_parameters import LiveParameters
from labconsole_v2x.security.backends import Backend
from labconsole_v2x.use_cases.catalogue import USE_CASES
from labconsole_v2x.use_cases.use_case_parameters import UseCaseParameters

SOURCE = Path(__file__).resolve().parents[3] / "shared" / "sources" / "preserve-d3.2.txt"
KINDS = {"v2x.live", "v2x.benchmark", "v2x.simulation", "v2x.attack", "v2x.use-cases"}
needs_source = pytest.mark.skipif(not SOURCE.exists(), reason="the source's text is not next to the checkout")
ATTACKS = {"a-sig-01": 5, "a-sig-06": 5, "a-sig-03": 2, "a-cer-03": 2}
"""Rows of Table 4.2 for each case."""


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return Plugins.discover()


@pytest.fixture(scope="module")
def published(plugins: Plugins) -> Mapping[str, PublishedTable]:
    return {table.name: table for table in published_tables(plugins) if KINDS & set(table.kinds)}


@pytest.fixture(scope="module")
def source() -> str:
    return SOURCE.read_text(encoding="utf-8")


Entered = dict[tuple[str, str], str]
"""(column, metric) -> the figure as it is printed."""


def entered(published: Mapping[str, PublishedTable]) -> Entered:
    return {
        (column.name, metric): figure.printed
        for table in published.values()
        for column in table.columns
        for metric, figure in column.figures.items()
    }


def stated(words: str, pattern: str) -> tuple[str, ...]:
    """The numbers that the text has at the one place of this pattern, or at several that agree."""
    found = set(re.findall(pattern, words))
    assert len(found) == 1, pattern
    (numbers,) = found
    return numbers if isinstance(numbers, tuple) else (numbers,)


def chapter_4(words: str) -> Entered:
    """The values in the text of section 4.1, found by the words around them."""
    all_loads, hardest = stated(
        words, r"takes, on average, ([\d.]+) sec . In the .*? goes to approximately ([\d.]+) sec"
    )
    asic = stated(words, r"for the by the ASIC is ([\d.]+) and ([\d.]+) s for a receiver load of 100 and 500 msg/s")
    (both,) = stated(words, r"is not significant \(both take approximately ([\d.]+)s\)")
    saturated, moderate = stated(
        words, r"latency of ([\d.]+) ?s per message for the case of 500 msg/s \(compared to ([\d.]+)s"
    )
    (none,) = stated(words, r"case of no security is insignificant \(([\d.]+)%\) even for the high-load")
    (full,) = stated(words, r"significantly increases the packet loss \((\d+)% packet loss for a load of 1500 msg/s\)")
    (cpu,) = stated(words, r"consume (\d+)% of one CPU core and 60% of the available memory")
    certificate, digest, bare = stated(
        words,
        r"approximately (\d+) bytes if the complete .*? or (\d+) bytes if only .*? the CAM message is (\d+) bytes",
    )
    return {
        ("preserve-figure-4-1/any-load", "verify_time"): f"{all_loads} sec",
        ("preserve-figure-4-1/15-20", "verify_time"): f"{hardest} sec",
        ("preserve-figure-4-2/asic-100", "verify_time"): f"{asic[0]} s",
        ("preserve-figure-4-2/asic-500", "verify_time"): f"{asic[1]} s",
        ("preserve-figure-4-3/5-1", "latency_mean"): f"{both} s latency",
        ("preserve-figure-4-3/5-1-header", "latency_mean"): f"{both} s latency",
        ("preserve-figure-4-3/5-10", "latency_mean"): f"{moderate} s latency",
        ("preserve-figure-4-3/5-100", "latency_mean"): f"{saturated} s latency",
        ("preserve-figure-4-4/15-100-none", "packet_loss"): f"{none} %",
        ("preserve-figure-4-4/15-100-full", "packet_loss"): f"{full} %",
        ("preserve-figure-4-5/15-100-full", "cpu{role=receiver}"): f"{cpu} %",
        ("preserve-figure-4-1-simulated/15-20", "verify_time"): f"{hardest} sec",
        ("preserve-figure-4-2-simulated/asic-100", "verify_time"): f"{asic[0]} s",
        ("preserve-figure-4-2-simulated/asic-500", "verify_time"): f"{asic[1]} s",
        ("preserve-figure-4-5-simulated/15-100-full", "receiver_load"): f"{cpu} %",
        ("preserve-packet-sizes/none", "packet_size{signer=none}"): f"{bare} bytes",
        ("preserve-packet-sizes/secured", "packet_size{signer=digest}"): f"{digest} bytes",
        ("preserve-packet-sizes/secured", "packet_size{signer=certificate}"): f"{certificate} bytes",
    }


def table_3_2(text: str) -> Entered:
    """Four rows with four values; raw OpenSSL's are those of `openssl speed`."""
    head, *rows = [
        line.split("\t") for line in text.split("Setup #")[1].split("\nTable 3.2")[0].strip("\t\n").split("\n")
    ]
    units = [re.sub(r"\w+ \((\w+)\)", r"\1", title) for title in head]
    assert units == ["ms", "sign/s", "ms", "verify/s"]
    metrics = ("sign_fastest", "sign_rate", "verify_fastest", "verify_rate")
    found: Entered = {}
    for setup, *values in rows:
        kind, bits = stated(setup, r"(VSSKit2|Raw) OpenSSL \((\d+bit)\)")
        for metric, value, unit in zip(metrics, values, units, strict=True):
            name = metric if kind == "VSSKit2" else f"openssl_{metric}"
            name += "{cores=processes}" if kind == "Raw" and metric.endswith("rate") else ""
            found[f"preserve-table-3-2/{kind.lower()}-{bits}", name] = f"{value} {unit}"
    return found


def rows_of_table_4_2(text: str) -> list[list[str]]:
    """Case, attackers, frequency, delivery ratio, delay and loss; the page break repeats the heading."""
    rows: list[list[str]] = []
    for line in text.split("\nUse Case Code\t", 1)[1].split("\nTable 4.2:")[0].splitlines():
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) == 6 and cells[5].replace(".", "").isdigit():
            rows.append([cells[0] or rows[-1][0], cells[1] or rows[-1][1], *cells[2:]])
    return rows


def table_4_2(text: str) -> Entered:
    found: Entered = {}
    for case, attackers, frequency, share, delay, loss in rows_of_table_4_2(text):
        column = f"preserve-table-4-2/{case.lower()}-{attackers}-{frequency}"
        found[column, "latency_mean"], found[column, "packet_loss"] = f"{delay} msec", f"{loss} %"
        found[column, "benign_share"] = f"{share} %"
    return found


@needs_source
def test_every_number_is_in_the_text_of_the_source(published: Mapping[str, PublishedTable], source: str) -> None:
    words = " ".join(re.sub(r"[*$]", "", source).split())
    expected = chapter_4(words) | table_3_2(source) | table_4_2(source)
    assert entered(published) == expected
    assert len(expected) == 18 + 16 + 3 * sum(ATTACKS.values())


@needs_source
def test_every_verdict_is_in_table_2_17(published: Mapping[str, PublishedTable], source: str) -> None:
    tables = source.split("\nTable 2.17: VSS Kit 2 functional test results\n")[1:]
    printed = dict(re.findall(r"^([AF]-[A-Z]{3}-\d\d)\t(passed|not tested)$", "\n".join(tables), re.M))
    (column,) = published["preserve-table-2-17"].columns
    assert {case: verdict.printed for case, verdict in column.verdicts.items()} == printed
    assert len(printed) == 35 and list(printed.values()).count("passed") == 20
    assert {verdict.result for verdict in column.verdicts.values()} == {"pass", "not tested"}


def test_verdicts_are_those_of_runs_in_software(published: Mapping[str, PublishedTable]) -> None:
    """The source's verdicts have the codes of ours, and are next to no run with a token."""
    table = published["preserve-table-2-17"]
    (column,) = table.columns
    assert table.kinds == ("v2x.use-cases",)
    counted = {code for code, case in USE_CASES.items() if case.counted}
    assert counted - set(column.verdicts) == {"A-SIG-06"} and not set(column.verdicts) - counted
    software, token = (UseCaseParameters(backend=backend) for backend in (Backend.OPENSSL, Backend.TOKEN))
    assert same_scenario(column.parameters, software.model_dump(mode="json"))
    assert not same_scenario(column.parameters, token.model_dump(mode="json"))


@needs_source
def test_cases_of_table_2_17_are_those_of_tables_2_6_to_2_16(
    published: Mapping[str, PublishedTable], source: str
) -> None:
    """But for those that a note names; the notes have the titles of all cases."""
    listed = dict(re.findall(r"^\d\t([AF]-[A-Z]{3}-\d\d)\t(.+)$", source, re.M))
    table = published["preserve-table-2-17"]
    (column,) = table.columns
    only_here, only_there = set(column.verdicts) - set(listed), set(listed) - set(column.verdicts)
    assert only_here == {"F-IVS-01", "F-CON-01", "A-CER-01", "A-IVS-01"} and only_there == {"A-SIG-06"}
    assert any(all(case in note for case in only_here | only_there) for note in table.notes)
    notes = " ".join(table.notes)
    shortened = {"F-SIG-05", "F-SIG-06", "F-SIG-07"}
    assert not [case for case in listed.keys() - shortened if f"{case} {listed[case].replace('–', '-')}" not in notes]
    assert all(f"{case} the same, not compatible with" in notes for case in shortened)
    assert len(listed) == 32


@needs_source
def test_tables_of_the_environment_are_in_the_notes(published: Mapping[str, PublishedTable], source: str) -> None:
    """Tables 3.1 and 4.1 have no results, but every figure next to them rests on theirs."""
    rows = dict(re.findall(r"^([A-Z][\w ]+)\t(.+)$", source.split("Platform\tNEXCOM")[1].split("Table 3.1:")[0], re.M))
    environment = published["preserve-table-3-2"].notes[0]
    for name in ("Operating system", "Compiler", "Target", "Processor type", "Memory type"):
        assert rows[name] in environment, name
    assert f"{rows['Physical cores']} physical cores, {rows['Hyperthreads']} hyperthreads" in environment
    assert rows["Processor speed"].replace("MHz", " MHz") in environment and "VTC 6201" in environment
    setting = source.split("Table 4.1: System parameters")[-1]
    senders, frequency = stated(
        setting, r"No. of Senders\t(\d+)\nNo. of Attackers\t2, 4\nSender Frequency \(each\)\t(\d+)"
    )
    for column in published["preserve-table-4-2"].columns:
        deciding = (column.parameters["senders"], column.parameters["rate"], column.parameters["security"])
        assert deciding == (int(senders), float(frequency), "full")
        attack = "{attack}-{attackers}-{attack_rate:g}".format(**column.parameters)
        assert column.name == f"preserve-table-4-2/{attack}"
    notes = " ".join(published["preserve-table-4-2"].notes)
    assert "5 senders at 10 Hz each, 2 or 4 attackers at 10, 20, 50 or 100 Hz each" in notes
    assert "71.42, 55.55, 33.33 and 20 %" in notes and "11.11 % of four at 100 Hz" in notes
    assert {row[3] for row in rows_of_table_4_2(source)} == {"71.42", "55.55", "33.33", "20", "11.11"}


@pytest.mark.parametrize(
    ("place", "metric", "value", "unit"),
    [
        ("preserve-figure-4-1/any-load", "verify_time", 9000, "us"),
        ("preserve-figure-4-1/15-20", "verify_time", 11_000, "us"),
        ("preserve-figure-4-2/asic-100", "verify_time", 8600, "us"),
        ("preserve-figure-4-2/asic-500", "verify_time", 9100, "us"),
        ("preserve-figure-4-3/5-1", "latency_mean", 17.1, "ms"),
        ("preserve-figure-4-3/5-1-header", "latency_mean", 17.1, "ms"),
        ("preserve-figure-4-3/5-10", "latency_mean", 20.4, "ms"),
        ("preserve-figure-4-3/5-100", "latency_mean", 600, "ms"),
        ("preserve-figure-4-4/15-100-none", "packet_loss", 1.41, "%"),
        ("preserve-figure-4-4/15-100-full", "packet_loss", 85, "%"),
        ("preserve-figure-4-5/15-100-full", "cpu{role=receiver}", 100, "%"),
        ("preserve-figure-4-2-simulated/asic-500", "verify_time", 9100, "us"),
        ("preserve-packet-sizes/none", "packet_size{signer=none}", 89, "B"),
        ("preserve-packet-sizes/secured", "packet_size{signer=digest}", 180, "B"),
        ("preserve-packet-sizes/secured", "packet_size{signer=certificate}", 450, "B"),
        ("preserve-table-3-2/vsskit2-32bit", "sign_fastest", 7.1, "ms"),
        ("preserve-table-3-2/vsskit2-32bit", "verify_rate", 132, "msg/s"),
        ("preserve-table-3-2/vsskit2-64bit", "verify_fastest", 2.8, "ms"),
        ("preserve-table-3-2/vsskit2-64bit", "verify_rate", 387, "msg/s"),
        ("preserve-table-3-2/raw-32bit", "openssl_verify_rate{cores=processes}", 490.9, "msg/s"),
        ("preserve-table-3-2/raw-64bit", "openssl_sign_rate{cores=processes}", 6742.2, "msg/s"),
        ("preserve-table-3-2/raw-64bit", "openssl_verify_fastest", 1.1, "ms"),
        ("preserve-table-4-2/a-sig-01-4-100", "packet_loss", 72.66, "%"),
        ("preserve-table-4-2/a-sig-06-2-50", "latency_mean", 57.13, "ms"),
        ("preserve-table-4-2/a-cer-03-2-20", "latency_mean", 16.1, "ms"),
        ("preserve-table-4-2/a-sig-01-4-100", "benign_share", 11.11, "%"),
    ],
)
def test_spot_values(plugins: Plugins, place: str, metric: str, value: float, unit: str) -> None:
    (column,) = published_columns(plugins, place)
    figure = column.figures[metric]
    assert figure.value == pytest.approx(value) and figure.unit == unit


def test_no_point_of_a_curve_is_entered(published: Mapping[str, PublishedTable]) -> None:
    """What the text states of each figure, and no more."""
    columns = {name: [column.name.partition("/")[2] for column in table.columns] for name, table in published.items()}
    assert {name: len(found) for name, found in columns.items()} == {
        "preserve-figure-4-1": 2,
        "preserve-figure-4-2": 2,
        "preserve-figure-4-3": 4,
        "preserve-figure-4-4": 2,
        "preserve-figure-4-5": 1,
        "preserve-figure-4-1-simulated": 1,
        "preserve-figure-4-2-simulated": 2,
        "preserve-figure-4-5-simulated": 1,
        "preserve-packet-sizes": 2,
        "preserve-table-4-2": 14,
        "preserve-table-2-17": 1,
        "preserve-table-3-2": 4,
    }
    assert columns["preserve-figure-4-4"] == ["15-100-none", "15-100-full"], "no value of the third line is stated"


def test_run_is_of_the_same_scenario_by_load_and_configuration(plugins: Plugins) -> None:
    def stored(**parameters: Any) -> Mapping[str, Any]:
        return LiveParameters(**parameters).model_dump(mode="json")

    (full,) = published_columns(plugins, "preserve-figure-4-4/15-100-full")
    same = {"senders": 15, "rate": 100.0, "security": "full"}
    assert same_scenario(full.parameters, stored(**same, instances=10, duration=3.0))
    for change in ({"security": "signed"}, {"senders": 5}, {"rate": 20.0}):
        assert not same_scenario(full.parameters, stored(**{**same, **change}))
    (asic,) = published_columns(plugins, "preserve-figure-4-2/asic-100")
    assert same_scenario(asic.parameters, stored(senders=5, rate=20.0, verification="token"))
    assert not same_scenario(asic.parameters, stored(senders=5, rate=20.0))


def test_contradictions_of_the_source_are_shown_with_its_figures(published: Mapping[str, PublishedTable]) -> None:
    notes = {name: " ".join(table.notes) for name, table in published.items()}
    assert "latency never exceeds 60 ms" in notes["preserve-figure-4-3"]
    assert "1,500 messages a second" in notes["preserve-figure-4-1"] and "1,500" in notes["preserve-figure-4-2"]
    assert "buffers as the main reason, then the size of packets" in notes["preserve-figure-4-4"]
    assert "no value is stated" in notes["preserve-figure-4-4"] and "reads it as signed" in notes["preserve-figure-4-4"]
    assert "does not validate the chain" in notes["preserve-table-3-2"]
    assert "175 times a second in 32 bit" in notes["preserve-table-3-2"]
    assert "without ASIC" in notes["preserve-table-2-17"] and "independent" in notes["preserve-table-2-17"]
