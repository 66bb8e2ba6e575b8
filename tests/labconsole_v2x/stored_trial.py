"""Runs of all profiles of the source's trial in a real store, with made-up figures for every row of its tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from labconsole.analysis.table_shape import table_shapes
from labconsole.model.metrics import Direction, Evaluation, Metric, Verdict
from labconsole.model.plugin import Plugins
from labconsole.model.series import Origin
from labconsole.processes import this_process
from labconsole.profiles.profile import campaign_of, load_profile
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole.store.run_store import Store
from labconsole_v2x.use_cases.catalogue import USE_CASES

MORNING = datetime(2025, 5, 20, 6, 0, tzinfo=UTC)
FAILED = "A-SIG-03"
"""The use case that fails with a token."""
PROFILES = (
    "v2x-use-cases",
    "v2x-benchmark",
    "v2x-loads",
    "v2x-testbed-published",
    "v2x-attacks-live",
    "v2x-attacks-published",
    "v2x-neighbours",
)
PROVENANCE = {"console": "0.1.0", "cpu": "Test CPU 3000", "host": "bench", "os": "Debian GNU/Linux 12 (bookworm)"}


def store_campaign(store: Store, profile: str, plugins: Plugins) -> list[int]:
    """The finished runs of a profile; the figures of each are above those of the scenario before it."""
    return store_runs(store, campaign_of(load_profile(profile, plugins)), plugins)


def store_runs(store: Store, campaign: NewCampaign, plugins: Plugins) -> list[int]:
    """The same of a campaign."""
    run_ids = store.add_campaign(campaign, this_process(), MORNING)
    for run_id, (index, repeat) in zip(run_ids, campaign.order, strict=True):
        started = MORNING + timedelta(seconds=run_id)
        scenario = campaign.scenarios[index]
        trial = plugins.trial(scenario.kind)
        warnings = trial.warnings(trial.parameters.model_validate(dict(scenario.parameters)))
        store.run_started(run_id, this_process(), PROVENANCE, list(warnings), started)
        figures = tuple(_figures(scenario, plugins, index + 1 + repeat / 100))
        verdicts = tuple(_verdicts(scenario)) if scenario.kind == "v2x.use-cases" else ()
        store.replace_evaluation(run_id, Evaluation(figures, verdicts))
        store.run_ended(run_id, RunStatus.FINISHED, "", started + timedelta(seconds=1))
    return run_ids


def _figures(scenario: NewScenario, plugins: Plugins, value: float) -> Iterator[Metric]:
    units = {kind.name: kind.unit for kind in plugins.trial(scenario.kind).metrics}
    origin = Origin.SIMULATED if scenario.kind == "v2x.simulation" else Origin.MEASURED
    shapes = table_shapes(plugins, scenario.kind)
    for metric in dict.fromkeys(row.metric for shape in shapes for row in shape.rows):
        name, _, label = metric.removesuffix("}").partition("{")
        labels = dict([label.split("=")]) if label else {}
        yield Metric(name, value, units[name], Direction.NEUTRAL, 1_000, labels, origin)


def _verdicts(scenario: NewScenario) -> Iterator[Verdict]:
    for code in USE_CASES:
        fails = code == FAILED and scenario.parameters["backend"] == "token"
        yield Verdict(code, "fail" if fails else "pass", "A packet without signature was accepted." if fails else "ok.")
