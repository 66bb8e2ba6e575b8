"""Thresholds of a scenario: what is asked, bounds included, and what is said where it is not met."""

from __future__ import annotations

import pytest

from labconsole.engine.run_end import threshold_verdicts
from labconsole.model.metrics import Metric

RATE = Metric("throughput", 1000.0, "msg/s")


@pytest.mark.parametrize(
    ("bounds", "result"),
    [
        ({"min": 1000.0}, "pass"),
        ({"min": 1000.1}, "fail"),
        ({"max": 1000.0}, "pass"),
        ({"max": 999.9}, "fail"),
        ({"min": 1000.0, "max": 1000.0}, "pass"),
        ({"min": 900.0, "max": 999.0}, "fail"),
    ],
)
def test_a_bound_itself_is_met(bounds: dict[str, float], result: str) -> None:
    [verdict] = threshold_verdicts({"throughput": bounds}, [RATE])
    assert verdict.result == result


def test_the_reason_names_the_figure_and_both_bounds() -> None:
    [verdict] = threshold_verdicts({"throughput": {"min": 900.0, "max": 999.0}}, [RATE])
    assert verdict.name == "threshold: throughput"
    assert verdict.reason == "throughput is 1000 msg/s; asked: at least 900 and at most 999 msg/s."


def test_a_metric_that_the_run_does_not_have_is_unknown() -> None:
    labelled = Metric("lost", 0.0, "msg", labels={"role": "sender"})
    [verdict] = threshold_verdicts({"lost": {"max": 0.0}}, [RATE, labelled])
    assert (verdict.result, verdict.reason) == ("unknown", "The run has no metric lost.")


@pytest.mark.parametrize(
    ("value", "result", "end"),
    [
        (9.5, "pass", ""),
        (9.75, "unknown", " The clocks leave open whether it is."),
        (10.25, "unknown", " The clocks leave open whether it is."),
        (10.5, "fail", ""),
    ],
)
def test_a_figure_that_is_nearer_to_a_bound_than_its_clocks_are_certain_is_unknown(
    value: float, result: str, end: str
) -> None:
    [verdict] = threshold_verdicts({"latency": {"max": 10.0}}, [Metric("latency", value, "ms", uncertainty=0.5)])
    assert verdict.result == result and verdict.evidence["uncertainty"] == 0.5
    assert verdict.reason == f"latency is {value:g} ± 0.5 ms; asked: at most 10 ms.{end}"
