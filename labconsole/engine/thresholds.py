"""Thresholds of a scenario: a metric that must not be below or above a bound, as a verdict of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labconsole.model.trial import Metric, Verdict

PREFIX = "threshold: "


def threshold_verdicts(thresholds: Mapping[str, Mapping[str, float]], metrics: Sequence[Metric]) -> tuple[Verdict, ...]:
    """One verdict per threshold (`{"throughput": {"min": 1000.0}}`); "unknown" where the run has no such metric."""
    values = {metric.name: metric for metric in metrics if not metric.labels}
    return tuple(_verdict(name, bounds, values.get(name)) for name, bounds in sorted(thresholds.items()))


def _verdict(name: str, bounds: Mapping[str, float], metric: Metric | None) -> Verdict:
    if metric is None:
        return Verdict(PREFIX + name, "unknown", f"The run has no metric {name}.", {"bounds": dict(bounds)})
    low, high = bounds.get("min", float("-inf")), bounds.get("max", float("inf"))
    asked = " and ".join(
        f"{word} {bounds[key]:g}" for key, word in (("min", "at least"), ("max", "at most")) if key in bounds
    )
    unit = f" {metric.unit}" if metric.unit else ""
    reason = f"{name} is {metric.value:g}{unit}; asked: {asked}{unit}."
    result = "pass" if low <= metric.value <= high else "fail"
    return Verdict(PREFIX + name, result, reason, {"value": metric.value, "bounds": dict(bounds)})
