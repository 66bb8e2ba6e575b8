"""How figures and parameters are written for people."""

from __future__ import annotations

import math
from enum import StrEnum

import pytest
from pydantic import BaseModel, Field

from labconsole.analysis.number_format import (
    format_change,
    format_difference,
    format_duration,
    format_figure,
    format_metric,
    format_number,
    row_scale,
)
from labconsole.analysis.parameter_texts import describe_parameters
from labconsole.model.metrics import Metric


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (42_756.0, "42,756"),
        (60_123.456, "60,123"),
        (1.23456, "1.235"),
        (0.0123456, "0.01235"),
        (-12.3456, "-12.35"),
        (0.00000012, "1.200e-07"),
        (math.nan, "–"),
        (math.inf, "∞"),
    ],
)
def test_numbers_have_four_digits_and_whole_ones_all(value: float, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1_234_567, "ns", "1.235 ms"),
        (850, "ns", "850 ns"),
        (2.5e9, "ns", "2.500 s"),
        (42_756, "B", "42,756 B"),
        (62_345_216, "B", "62.35 MB"),
        (12.5, "%", "12.50 %"),
        (3, "", "3"),
        (None, "ms", "–"),
    ],
)
def test_figures_carry_a_readable_unit(value: float | None, unit: str, text: str) -> None:
    assert format_figure(value, unit) == text


@pytest.mark.parametrize(
    ("value", "uncertainty", "text"),
    [
        (12.3456, 0.0, "12.35 ms"),
        (12.3456, 0.0523, "12.35 ± 0.052 ms"),
        (0.0523, 0.0012, "52.30 ± 1.2 µs"),
        (-0.4, 1.0, "-0.4000 ± 1.0 ms"),
        (2_500.0, 120.0, "2.500 ± 0.12 s"),
        (12.0, 1e9, "12 ± 1,000,000,000 ms"),
        (12.0, 1e-12, "12 ± 1.0e-12 ms"),
        (12.0, 1e308, "12 ± 1.0e+308 ms"),
        (5e-9, 1e308, "0.005000 ± inf ns"),
        (2_500.0, 5e-324, "2.500 ± 0.0e+00 s"),
    ],
)
def test_a_metric_between_clocks_has_its_uncertainty_in_the_same_unit(
    value: float, uncertainty: float, text: str
) -> None:
    assert format_metric(Metric("latency", value, "ms", uncertainty=uncertainty)) == text


@pytest.mark.parametrize(
    ("percent", "text"),
    [(12.34, "+12.3 %"), (-4.06, "-4.1 %"), (-0.01, "0.0 %"), (410.4, "+410 %"), (4100.4, "+4,100 %"), (None, "–")],
)
def test_differences_carry_their_sign(percent: float | None, text: str) -> None:
    assert format_difference(percent) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.1234, "+12.3 %"),
        (0.254, "-74.6 %"),
        (9.99, "+899 %"),
        (0.1, "-90.0 %"),
        (10.01, "× 10.0"),
        (0.0188, "÷ 53.2"),
        (7.5 / 40_646, "÷ 5,420"),
    ],
)
def test_beyond_a_factor_of_ten_a_change_is_a_factor(ratio: float, text: str) -> None:
    assert format_change(ratio) == text


@pytest.mark.parametrize(
    ("values", "unit", "texts"),
    [
        ((40_646.0, 7.516), "ms", ["40.65 s", "0.007516 s"]),
        ((0.84, 12.5, None), "ms", ["0.8400 ms", "12.50 ms", "–"]),
        ((0.021, 0.08), "ms", ["21 µs", "80 µs"]),
        ((1_500.0, 3.0), "us", ["1.500 ms", "0.003000 ms"]),
        ((2_000.0, 2.0), "s", ["2,000 s", "2 s"]),
        ((62_345_216.0, 1_000.0), "B", ["62.35 MB", "0.001000 MB"]),
        ((60_123.0, 5.0), "msg/s", ["60,123 msg/s", "5 msg/s"]),
        ((0.0,), "ms", ["0 ms"]),
        ((), "ms", []),
    ],
)
def test_a_row_has_one_readable_unit(values: tuple[float | None, ...], unit: str, texts: list[str]) -> None:
    scale = row_scale(values, unit)
    assert [scale.figure(value) for value in values] == texts


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.417, "0.42 s"),
        (12.34, "12.3 s"),
        (59.97, "1 min 00 s"),
        (185, "3 min 05 s"),
        (7_620, "2 h 07 min"),
        (None, "–"),
    ],
)
def test_durations_are_formatted_readably(seconds: float | None, text: str) -> None:
    assert format_duration(seconds) == text


class Loop(StrEnum):
    OPEN = "open"
    CLOSED = "closed"


class Link(BaseModel):
    port: int = Field(default=5671, title="Port", json_schema_extra={"kind": "port"})


class Model(BaseModel):
    rate: float = Field(default=1000.0, title="Rate", description="Per sender", json_schema_extra={"unit": "msg/s"})
    loop: Loop = Loop.CLOSED
    link: Link = Link()
    sizes: tuple[int, ...] = (1, 2)


def test_parameters_have_titles_units_and_a_mark_when_changed() -> None:
    stored = Model(rate=2500.0, link=Link(port=5672)).model_dump(mode="json") | {"gone": True}
    described = {value.name: value for value in describe_parameters(stored, Model)}
    assert list(described) == ["rate", "loop", "link.port", "sizes", "gone"]
    assert (described["rate"].title, described["rate"].unit, described["rate"].text) == ("Rate", "msg/s", "2,500")
    assert [name for name, value in described.items() if value.changed] == ["rate", "link.port"]
    assert described["link.port"].title == "link: Port"
    assert described["link.port"].text == "5672", "a port is a name, not a quantity"
    assert (described["gone"].text, described["sizes"].text) == ("yes", "1, 2")
