"""A made-up trial, and runs of it with whatever figures a test needs, without any store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import Field

from labconsole.analysis.published_figures import PublishedColumn, PublishedFigure
from labconsole.model.metrics import LINK_USE, Direction, Metric, MetricKind
from labconsole.model.parameters import Parameters
from labconsole.model.series import Origin
from labconsole.model.trial import Trial
from labconsole.store.records import RunRow
from tests.helpers.run_row import finished_run

UNITS = {"rate": "letters/s", "wait_p99": "ms", LINK_USE: "%", "cpu{role=sender}": "us", "cpu{role=receiver}": "us"}


class PostParameters(Parameters):
    """What is sent, and how."""

    letters: int = Field(default=10, title="Letters", json_schema_extra={"unit": "letters"})
    sealed: bool = Field(default=False, title="Sealed")
    stamped: bool = Field(default=False, title="Stamped")


class PostTrial(Trial[PostParameters]):
    """Seals and stamps letters: each of the two is a step that is worth a finding.

    It only describes its runs, whose figures the tests make up: `run` and `evaluate` are never called.
    """

    kind: ClassVar[str] = "post"
    title: ClassVar[str] = "Post"
    description: ClassVar[str] = "Letters"
    parameters: ClassVar[type[Parameters]] = PostParameters
    series: ClassVar[tuple[Any, ...]] = ()
    live: ClassVar[tuple[Any, ...]] = ()
    metrics: ClassVar[tuple[MetricKind, ...]] = (
        MetricKind("rate", "Rate", "letters/s", Direction.HIGHER, "Letters per second."),
        MetricKind("lost", "Lost", "letters", Direction.LOWER, "Letters that never came."),
        MetricKind("wait_p99", "Wait p99", "ms", Direction.LOWER, "99 % of the letters wait less.", 0.99),
        MetricKind("weight", "Weight", "letters", Direction.NEUTRAL, "Neither light nor heavy is good."),
        MetricKind("cpu", "CPU per letter", "us", Direction.LOWER, "CPU time per letter."),
    )

    def run(self, parameters: PostParameters, context: Any) -> None:
        raise NotImplementedError

    def evaluate(self, parameters: PostParameters, samples: Any, events: Any) -> Any:
        raise NotImplementedError

    def contrast(self, reference: PostParameters, other: PostParameters) -> str:
        steps = [("open", "sealed", "stamped")[one.sealed + one.stamped] for one in (reference, other)]
        more = reference.sealed <= other.sealed and reference.stamped <= other.stamped
        return f"{steps[1]} against {steps[0]}" if more and reference != other and steps[0] != steps[1] else ""


SCENARIOS: Mapping[str, Mapping[str, Any]] = {
    "open": {"letters": 10, "sealed": False, "stamped": False},
    "sealed": {"letters": 10, "sealed": True, "stamped": False},
    "stamped": {"letters": 10, "sealed": True, "stamped": True},
}


def run(number: int, scenario: str, figures: Mapping[str, float], **changes: Any) -> RunRow:
    """A finished run with these figures."""
    metrics = {name: metric(name, value) for name, value in figures.items()}
    parameters = SCENARIOS.get(scenario, SCENARIOS["open"])
    row = finished_run(number, PostTrial.kind, parameters, metrics, campaign="Spring", scenario=scenario)
    return replace(row, **changes)


def metric(name: str, value: float, **changes: Any) -> Metric:
    """A figure of the made-up trial, `cpu{role=sender}` with its label."""
    base, _, label = name.removesuffix("}").partition("{")
    labels = dict([label.split("=")]) if label else {}
    return replace(Metric(base, value, UNITS.get(name, "letters"), samples=10_000, labels=labels), **changes)


def repeats(first: int, scenario: str, name: str, values: Sequence[float], **changes: Any) -> list[RunRow]:
    """Runs numbered from `first` on, one for each value of one figure; `changes` also of that figure's `origin`."""
    origin = changes.pop("origin", Origin.MEASURED)
    return [
        run(number, scenario, {}, **{"metrics": {name: metric(name, value, origin=origin)}, **changes})
        for number, value in enumerate(values, first)
    ]


def published(figures: Mapping[str, float], parameters: Mapping[str, Any], **changes: Any) -> PublishedColumn:
    """A column of a publication."""
    column = PublishedColumn(
        name="gazette/sealed",
        title="Gazette, sealed",
        kinds=(PostTrial.kind,),
        parameters=parameters,
        figures={
            name: PublishedFigure(
                value, UNITS.get(name, "letters"), f"{value:g} {UNITS.get(name, 'letters')}", "Table 1"
            )
            for name, value in figures.items()
        },
        reference="Table 1",
    )
    return replace(column, **changes)
