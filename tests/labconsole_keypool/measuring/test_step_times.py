"""Each step on a real token: its operations, and its figures from the recorded operations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labconsole import paths
from labconsole.model.trial import Origin
from labconsole.security.token.configuration import TokenConfiguration
from labconsole_keypool.device.emulation import DeviceOperation, Timing
from labconsole_keypool.measuring import step_times_role
from labconsole_keypool.measuring.step_times_evaluation import curves, distributions
from labconsole_keypool.measuring.step_times_parameters import Step, StepOperation, StepTimesParameters
from labconsole_keypool.measuring.step_times_role import StepTimesRole
from labconsole_keypool.measuring.storage_media import Storage
from labconsole_keypool.trials.step_times_trial import StepTimesTrial
from tests.helpers.softhsm_token import create_softhsm_token
from tests.labconsole_keypool.recorded_device import RecordedDevice
from tests.labconsole_keypool.token_role import PIN, SO_PIN, TokenRun, run_on_token

TRIAL = StepTimesTrial()
USUAL = {"time_per_key", "total_time", "throughput", "latency_mean", "latency_peak", "latency_range", "keys"}
PERCENTILES = {"latency_p50", "latency_p95", "latency_p99"}
FURTHER = {
    Step.WRAP_AND_SAVE: {"generation_per_key", "wrap_and_save_per_key"},
    Step.LOAD_AND_UNWRAP: {"load_time", "initialisation_time", "unwrap_time", "unwrap_per_key"},
    Step.SIGN_WHILE_UNWRAPPING: {"unwrapped", "unwrap_per_key"},
}
DONE = {
    Step.GENERATE: {StepOperation.GENERATE: 7},
    Step.WRAP_AND_SAVE: {StepOperation.GENERATE: 7, StepOperation.WRAP: 7, StepOperation.SAVE: 7},
    Step.SAVE: {StepOperation.SAVE: 7},
    Step.LOAD: {StepOperation.LOAD: 7},
    Step.LOAD_AND_UNWRAP: {StepOperation.LOAD: 7, StepOperation.INITIALISE: 1, StepOperation.UNWRAP: 7},
    Step.SIGN: {StepOperation.SIGN: 7},
}
"""Keys that went through each operation of a step of seven."""


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> TokenConfiguration:
    return create_softhsm_token(tmp_path_factory.mktemp("softhsm"), "test", PIN, SO_PIN)


def done(configuration: TokenConfiguration, folder: Path, stopped: bool = False, **settings: Any) -> TokenRun:
    parameters = StepTimesParameters(**{"keys": 7, "batch": 3, "distinct": 2, "key_kind": "p-256", **settings})
    return run_on_token(TRIAL, StepTimesRole, configuration, parameters, folder / "run", stopped=stopped)


def table(run: TokenRun) -> dict[str, Any]:
    return run.samples.table("operations", "token")


@pytest.mark.parametrize(
    ("step", "storage"),
    [
        *((step, Storage.DATABASE) for step in DONE),
        *((step, Storage.FILE) for step in (Step.WRAP_AND_SAVE, Step.LOAD_AND_UNWRAP)),
    ],
)
def test_every_key_goes_through_each_operation_of_a_step(
    step: Step, storage: Storage, configuration: TokenConfiguration, tmp_path: Path
) -> None:
    run = done(configuration, tmp_path, step=step, storage=storage)
    rows = table(run)
    through = {
        operation: int(rows["keys"][rows["operation"] == operation].sum())
        for operation in StepOperation
        if operation in rows["operation"]
    }
    assert through == DONE[step]
    assert set(run.figures) == USUAL | FURTHER.get(step, set()), "no percentiles of seven"
    assert run.figures["keys"] == run.live["done"].count == 7
    assert {metric.origin for metric in run.metrics} == {Origin.MEASURED}
    assert not list(paths.data_dir().glob("step-times-*")), "the storage is removed"


def test_threads_share_the_requests_and_sign_at_a_time(configuration: TokenConfiguration, tmp_path: Path) -> None:
    run = done(configuration, tmp_path, step="sign", keys=100, threads=3)
    rows = table(run)
    assert np.bincount(rows["thread"])[1:].tolist() == [34, 33, 33]
    assert run.figures["total_time"] * 1e6 == pytest.approx(rows["finished"].max() - rows["started"].min())
    assert run.figures["time_per_key"] == pytest.approx(run.figures["total_time"] / 100)
    assert run.live["operation"].maximum == pytest.approx(run.figures["latency_peak"] * 1e6)


def test_keys_are_unwrapped_while_requests_are_signed(configuration: TokenConfiguration, tmp_path: Path) -> None:
    run = done(configuration, tmp_path, step="sign-while-unwrapping", keys=300)
    assert set(run.figures) == USUAL | PERCENTILES | FURTHER[Step.SIGN_WHILE_UNWRAPPING]
    rows = table(run)
    signed, unwrapped = (rows["operation"] == each for each in (StepOperation.SIGN, StepOperation.UNWRAP))
    assert run.figures["keys"] == signed.sum() == 300
    assert run.figures["unwrapped"] == unwrapped.sum() > 0
    assert set(rows["thread"][signed]) == {1} and set(rows["thread"][unwrapped]) == {2}
    span = rows["finished"][signed].max() - rows["started"][signed].min()
    assert run.figures["total_time"] * 1e6 == pytest.approx(span), "the step's time excludes unwrapping"


def test_emulated_device_signs_in_the_time_of_table_2_10_for_its_threads(
    configuration: TokenConfiguration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four threads: 6.9 ms a request of the device's time, and so 4 * 6.9 for each (of 43 ms with one)."""
    devices: list[RecordedDevice] = []

    def recorded(timing: Timing | None = None) -> RecordedDevice:
        devices.append(RecordedDevice(timing))
        return devices[-1]

    monkeypatch.setattr(step_times_role, "Device", recorded)
    run = done(configuration, tmp_path, step="sign", keys=40, threads=4, timing="luna-sa-1700", sign="stockholm")
    signed = devices[-1].operations
    assert len(signed) == 40 and {done.operation for done in signed} == {DeviceOperation.SIGN}
    usual = [done.began_within(27_600_000, done.asked_ns, done.entered_ns) for done in signed]
    first = signed[usual.index(False)]
    assert usual.count(True) == 39 and first.began_within(599_600_000, first.asked_ns, first.entered_ns), "warms it up"
    assert 27.6 <= run.figures["latency_p50"] <= max(done.left_ns - done.asked_ns for done in signed) / 1e6 + 1
    assert {metric.origin for metric in run.metrics} == {Origin.EMULATED}


def test_cancelled_step_ends_soon_with_the_operations_done_so_far(
    configuration: TokenConfiguration, tmp_path: Path
) -> None:
    run = done(configuration, tmp_path, stopped=True, step="sign", keys=50)
    assert run.metrics == ()


def test_curves_and_distributions_show_the_recorded_operations(
    configuration: TokenConfiguration, tmp_path: Path
) -> None:
    run = done(configuration, tmp_path, step="wrap-and-save")
    parameters = StepTimesParameters(step="wrap-and-save")
    rows = table(run)
    lines = {curve.title: curve for curve in curves(parameters, run.samples, int(rows["started"].min()))}
    assert {title: len(line.values) for title, line in lines.items()} == {"Generate": 7, "Wrap": 7, "Save": 3}
    assert all((line.t_s > 0).all() and (np.diff(line.t_s) >= 0).all() for line in lines.values())
    (shown,) = distributions(parameters, run.samples)
    assert shown.values.mean() == pytest.approx(run.figures["latency_mean"])


def test_contrast_compares_equal_steps_only() -> None:
    def contrast(one: dict[str, Any], other: dict[str, Any]) -> str:
        return TRIAL.contrast(StepTimesParameters(**one), StepTimesParameters(**other))

    assert contrast({"threads": 1}, {"threads": 4}) == "Signing threads: 4 against 1"
    assert contrast({"threads": 4}, {"threads": 1}) == "", "the fewer threads are the reference"
    assert contrast({"step": "sign"}, {"step": "sign-while-unwrapping"}).startswith(
        "Step: Sign while keys are unwrapped"
    )
    assert contrast({"step": "save", "storage": "file"}, {"step": "save"}) == (
        "Storage: Database: the key store against Flat file"
    )
    assert contrast({"keys": 100}, {"keys": 200}) == ""
    assert contrast({"keys": 100}, {"keys": 200, "threads": 2}) == "Signing threads: 2 against 1"
    assert contrast({"step": "load", "batch": 10}, {"step": "load", "batch": 20}) == ""
    generate, wrap, sign, unwrapping = (
        StepTimesParameters(step=step) for step in ("generate", "wrap-and-save", "sign", "sign-while-unwrapping")
    )
    assert contrast({"step": "generate"}, {"step": "sign"}) == ""
    assert not TRIAL.comparable(generate, sign) and not TRIAL.comparable(generate, wrap)
    assert TRIAL.comparable(sign, unwrapping) and TRIAL.comparable(unwrapping, sign) and TRIAL.comparable(wrap, wrap)
