"""The thesis' published figures: every number as its text prints it, and no other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from labconsole.analysis.published_figures import PublishedTable, published_columns, published_tables, same_scenario
from labconsole.model.plugin import Plugins
from labconsole_keypool.service.arrivals import TABLE_4_1_DELAYS_MS, TABLE_4_1_REQUESTS
from labconsole_keypool.simulation.simulation_parameters import SimulationParameters

SOURCE = Path(__file__).resolve().parents[4] / "shared" / "sources" / "hsm-key-pool-thesis.txt"
KIND = "keypool.simulation"
FIGURES = "keypool-figures-4-1-to-4-5"


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return Plugins.discover()


@pytest.fixture(scope="module")
def thesis(plugins: Plugins) -> Mapping[str, PublishedTable]:
    return {table.name: table for table in published_tables(plugins) if KIND in table.kinds}


def stored(**parameters: object) -> Mapping[str, object]:
    """Parameters as a run has them in the store."""
    return SimulationParameters.model_validate(parameters).model_dump(mode="json")


def _table_4_2(text: str) -> dict[tuple[str, str], str]:
    """(column, metric) -> the figure in Table 4-2, its actual results under `rate-...`, the calculated behind `=`."""
    rows = text.split("\nTable 4-2: ")[-1].split("Calculations:")[0].splitlines()
    head, *tests = [line.split("\t") for line in rows if "\t" in line]
    assert head[1:6:2] == ["HR (sign/ s)", "Calculated Q", "Latency Calculation (s)"]
    found = {}
    for _, rate, _, calculated_q, actual_q, calculated_latency, actual_latency, _ in tests:
        found[f"keypool-table-4-2/rate-{rate}", "queue_length"] = f"{actual_q} requests"
        found[f"keypool-table-4-2/rate-{rate}", "latency_peak"] = f"{actual_latency} s"
        found[f"keypool-table-4-2-calculated/rate-{rate}", "queue_length"] = f"{calculated_q} requests"
        found[f"keypool-table-4-2-calculated/rate-{rate}", "latency_peak"] = f"{calculated_latency} s"
    assert len(tests) == 3
    return found


def _sentences(text: str) -> dict[tuple[str, str], str]:
    """(column, metric) -> the figure in the text, found by the words around them."""
    words = " ".join(text.split())

    def stated(pattern: str) -> tuple[str, ...]:
        found = set(re.findall(pattern, words))
        assert len(found) == 1, pattern
        (numbers,) = found
        return numbers if isinstance(numbers, tuple) else (numbers,)

    without, with_pool = stated(r"decreased the peak latency from ([\d,]+) ms to ([\d,]+) ms")
    first_without, dropped_without = stated(r"request number (\d+) begins to drop .*? (\d+) out of 3000 requests were")
    first_with, dropped_with = stated(
        r"request number (\d+) the system starts .*? only (\d+) out of 3000 requests were"
    )
    (q,) = stated(r"= \(40 - 26\.3\) \* 100 = (\d+)")
    (base_rate,) = stated(r"take the rate of ([\d.]+) request per second as our BR")
    (limit,) = stated(r"maximum queue length for requests was found to be (\d+) requests")
    (longest,) = stated(r"maximum total response time of (\d+) ms")
    (rate,) = stated(r"within 3000 ms, which is equivalent to (\d+) requests per second")
    captions = set(re.findall(r"Processing of (\d+) signing requests (?:with )?at ([\d.]+) requests per second", words))
    assert len(captions) == 3
    return {
        (f"{FIGURES}/figure-4-1", "latency_peak"): f"{without} ms",
        (f"{FIGURES}/figure-4-3", "latency_peak"): f"{with_pool} ms",
        (f"{FIGURES}/figure-4-4", "dropped"): f"{dropped_without} requests",
        (f"{FIGURES}/figure-4-4", "first_dropped"): f"{first_without} request no.",
        (f"{FIGURES}/figure-4-5", "dropped"): f"{dropped_with} requests",
        (f"{FIGURES}/figure-4-5", "first_dropped"): f"{first_with} request no.",
        ("keypool-table-4-2-calculated/rate-40-for-100-s", "queue_length"): f"{q} requests",
        **{
            (f"keypool-base-rate/rate-{at.replace('.', '-')}", "processed"): f"{requests} requests"
            for requests, at in captions
        },
        ("keypool-base-rate/rate-26-3", "throughput"): f"{base_rate} requests per second",
        ("keypool-queue-limit/queue-150", "queue_length_peak"): f"{limit} requests",
        ("keypool-queue-limit/queue-150", "latency_peak"): f"{longest} ms",
        ("keypool-queue-limit/queue-150", "throughput"): f"{rate} requests per second",
    }


@pytest.mark.skipif(not SOURCE.exists(), reason="the source's text is not next to the checkout")
def test_every_number_is_in_the_text_of_the_source(thesis: Mapping[str, PublishedTable]) -> None:
    text = SOURCE.read_text(encoding="utf-8")
    entered = {
        (column.name, metric): figure.printed
        for table in thesis.values()
        for column in table.columns
        for metric, figure in column.figures.items()
    }
    assert entered == _table_4_2(text) | _sentences(text)
    assert len(entered) == 26


@pytest.mark.skipif(not SOURCE.exists(), reason="the source's text is not next to the checkout")
def test_the_rates_of_the_columns_are_those_of_the_source(thesis: Mapping[str, PublishedTable]) -> None:
    """A column's parameters are numbers of the source as well."""
    text = SOURCE.read_text(encoding="utf-8")
    rates = [line.split("\t")[1] for line in text.split("\nTable 4-2: ")[-1].splitlines() if re.match(r"\d\t", line)]
    assert [column.parameters["rate"] for column in thesis["keypool-table-4-2"].columns] == list(map(float, rates))
    captions = re.findall(r"Figure 4-(?:9|10|11): *\n?.* at ([\d.]+) requests per second\n", text)
    assert [column.parameters["rate"] for column in thesis["keypool-base-rate"].columns] == list(map(float, captions))


@pytest.mark.skipif(not SOURCE.exists(), reason="the source's text is not next to the checkout")
def test_table_4_1_is_the_source_s() -> None:
    """It is not a result, but every figure of Figs 4-1 to 4-5 rests on it."""
    lines = SOURCE.read_text(encoding="utf-8").split("\nTable 4-1: ")[-1].split("\n4.1 ")[0].splitlines()
    steps = [line.split("\t") for line in lines if re.match(r"\d", line)]
    assert [int(delay) for _, _, delay, _ in steps] == list(TABLE_4_1_DELAYS_MS)
    assert {int(last) - int(first) + 1 for first, last, _, _ in steps} == {TABLE_4_1_REQUESTS}


@pytest.mark.parametrize(
    ("place", "metric", "value", "unit"),
    [
        ("keypool-table-4-2/rate-40", "queue_length", 1028, "requests"),
        ("keypool-table-4-2/rate-50", "latency_peak", 53_266, "ms"),
        ("keypool-table-4-2/rate-100", "latency_peak", 83_314, "ms"),
        ("keypool-table-4-2-calculated/rate-40", "queue_length", 1027.5, "requests"),
        ("keypool-table-4-2-calculated/rate-100", "latency_peak", 84_018, "ms"),
        ("keypool-table-4-2-calculated/rate-40-for-100-s", "queue_length", 1370, "requests"),
        (f"{FIGURES}/figure-4-1", "latency_peak", 1_400_000, "ms"),
        (f"{FIGURES}/figure-4-3", "latency_peak", 12_000, "ms"),
        (f"{FIGURES}/figure-4-4", "dropped", 2073, "requests"),
        (f"{FIGURES}/figure-4-4", "first_dropped", 376, ""),
        (f"{FIGURES}/figure-4-5", "dropped", 17, "requests"),
        (f"{FIGURES}/figure-4-5", "first_dropped", 1537, ""),
        ("keypool-base-rate/rate-26-3", "throughput", 26.3, "requests/s"),
        ("keypool-queue-limit/queue-150", "queue_length_peak", 150, "requests"),
    ],
)
def test_spot_values(plugins: Plugins, place: str, metric: str, value: float, unit: str) -> None:
    (column,) = published_columns(plugins, place)
    figure = column.figures[metric]
    assert figure.value == pytest.approx(value)
    assert figure.unit == unit


def test_no_curve_is_entered(thesis: Mapping[str, PublishedTable]) -> None:
    """Of Figs 4-4 and 4-5 the text has no peak, of Figs 4-1 and 4-3 nothing was dropped: neither is a figure."""
    figures = {column.name.partition("/")[2]: set(column.figures) for column in thesis[FIGURES].columns}
    assert figures == {
        "figure-4-1": {"latency_peak"},
        "figure-4-3": {"latency_peak"},
        "figure-4-4": {"dropped", "first_dropped"},
        "figure-4-5": {"dropped", "first_dropped"},
    }


def test_a_run_is_of_the_same_scenario_by_arrivals_keys_and_queue(plugins: Plugins) -> None:
    (column,) = published_columns(plugins, f"{FIGURES}/figure-4-4")
    same = {"arrivals": "table-4-1", "keys": "generated", "queue_limit": 50}
    assert same_scenario(column.parameters, stored(**same))
    assert same_scenario(column.parameters, stored(**same, timing="luna-sa-1700-fig4-1"))
    assert not same_scenario(column.parameters, stored(**{**same, "queue_limit": 0}))
    assert not same_scenario(column.parameters, stored(**same, tail_requests=2000))
    (rate,) = published_columns(plugins, "keypool-table-4-2/rate-40")
    constant = {"arrivals": "constant", "keys": "pool", "queue_limit": 0, "rate": 40}
    assert same_scenario(rate.parameters, stored(**constant, requests=3000))
    assert not same_scenario(rate.parameters, stored(**constant, requests=4000))


def test_contradictions_of_the_source_are_shown_with_its_figures(thesis: Mapping[str, PublishedTable]) -> None:
    calculated, figures = (" ".join(thesis[name].notes) for name in ("keypool-table-4-2-calculated", FIGURES))
    assert "38 ms * 2217 = 84018 ms, which is 84,246" in calculated
    assert 38 * 2217 == 84_246 and 38 * 2211 == 84_018
    assert "no single service time gives all of the source's numbers" in figures
    assert "970,000 to 1,170,000 ms" in figures
    assert "6.5 times as fast as one, not 10 times" in " ".join(thesis["keypool-queue-limit"].notes)
    assert round(43 / 6.6, 1) == 6.5
