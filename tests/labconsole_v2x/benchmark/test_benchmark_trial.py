"""A short benchmark with its real processes: every figure is measured, next to `openssl speed` in the same run."""

from __future__ import annotations

import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.backends.openssl import backend as openssl_backend

from labconsole.model.trial import Level
from labconsole_v2x.benchmark.benchmark_parameters import BenchmarkParameters
from labconsole_v2x.benchmark.benchmark_series import OF_PACKETS, ON_SEVERAL_CORES, OPENSSL_S, How, Measured
from labconsole_v2x.benchmark.benchmark_trial import BenchmarkTrial, expected_seconds
from labconsole_v2x.benchmark.operations import PacketOperations
from labconsole_v2x.security.backends import Backend
from labconsole_v2x.security.structures import Curve
from tests.helpers import trial_lab
from tests.helpers.role_threads import RoleThreads

TRIAL = BenchmarkTrial()
SHORT = {"rounds": 1, "seconds": 0.05, "cores": 2}
OF_THE_ISSUE = {
    "verify_rate",
    "raw_verify_rate",
    "openssl_verify_rate",
    "verify_ratio_to_openssl",
    "verify_ratio_two_cores",
    "sign_ratio_to_openssl",
    "parse_hash_time",
}


@dataclass(frozen=True)
class Outcome(trial_lab.Outcome[BenchmarkParameters]):
    """The result of a benchmark."""

    def executions(self, operation: Measured, how: How = How.ONE) -> int:
        """How many executions of a measurement are recorded."""
        tables = [self.samples.table("executions", role) for role in self.samples.roles("executions")]
        return sum(int(np.count_nonzero((one["operation"] == operation) & (one["how"] == how))) for one in tables)


class BenchmarkLab(trial_lab.TrialLab[BenchmarkParameters, Outcome]):
    """One run; `during` is called on another thread at once."""

    trial = TRIAL
    outcome = Outcome


def run(folder: Path, **settings: Any) -> Outcome:
    return BenchmarkLab(folder).run(**{**SHORT, **settings})


@dataclass(frozen=True)
class Timed:
    """A run, and the seconds that it took."""

    outcome: Outcome
    seconds: float


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Timed:
    """A round of all measurements."""
    began = time.monotonic()
    outcome = run(tmp_path_factory.mktemp("benchmark") / "run")
    return Timed(outcome, time.monotonic() - began)


def test_every_figure_of_the_issue_is_measured(whole: Timed) -> None:
    outcome = whole.outcome
    assert outcome.failure is None
    assert set(outcome.figures) >= OF_THE_ISSUE
    assert set(outcome.figures) == {kind.name for kind in TRIAL.metrics}, "and all others"
    assert all(value > 0 for value in outcome.figures.values())
    labelled = {(one.name, one.labels["cores"]) for one in outcome.evaluation.metrics if one.labels}
    several = {(f"{name}_rate", cores) for name in ("sign", "verify") for cores in ("threads", "processes")}
    assert labelled == several | {("openssl_sign_rate", "processes"), ("openssl_verify_rate", "processes")}


def test_figures_are_of_one_computer(whole: Timed) -> None:
    """What one operation contains takes longer than its part, on a busy machine, too: hundreds of them are averaged."""
    figures = whole.outcome.figures
    assert figures["parse_hash_time"] / 1000 < figures["verify_time"] < figures["verify_cold_time"]
    assert figures["raw_verify_time"] < figures["verify_cold_time"], "three verifications"
    assert figures["verify_rate"] == pytest.approx(1000 / figures["verify_time"])
    for name in ("raw_sign", "raw_verify", "sign", "verify", "verify_decoded", "verify_cold", "parse_hash"):
        assert figures[f"{name}_fastest"] <= figures[f"{name}_time"]
    assert 0.05 < figures["verify_ratio_to_openssl"] < 3 and 0.05 < figures["sign_ratio_to_openssl"] < 3
    assert 0 < figures["parse_hash_share"] < 1


def test_both_openssl_versions_are_recorded(whole: Timed) -> None:
    (event,) = whole.outcome.events_named("versions")
    program = subprocess.run(["openssl", "version"], check=True, capture_output=True, text=True).stdout.strip()
    assert event.data == {"cryptography_openssl": openssl_backend.openssl_version_text(), "openssl": program}
    assert event.message == f"cryptography with {event.data['cryptography_openssl']}; the program openssl: {program}."
    assert re.fullmatch(r"OpenSSL \d.*", event.data["cryptography_openssl"])


def test_each_measurement_has_ten_executions_at_least_on_its_cores(whole: Timed) -> None:
    outcome = whole.outcome
    assert all(outcome.executions(operation) >= 10 for operation in OF_PACKETS)
    for operation in ON_SEVERAL_CORES:
        assert outcome.executions(operation, How.THREADS) >= 10
        assert outcome.executions(operation, How.PROCESSES) >= 20, "ten in each process"
    assert outcome.executions(Measured.OPENSSL_VERIFY) == outcome.executions(Measured.OPENSSL_SIGN, How.PROCESSES) == 1
    roles = outcome.samples.roles("executions")
    assert roles == ["benchmark-0", "benchmark-1"]
    done = outcome.frame.channels["measurements"].count
    assert done == outcome.frame.total == 7 + 2 + 2 * (1 + 2), "one in threads is done by one process, else by both"
    counts = sum(outcome.samples.table("executions", role)["count"].sum() for role in roles)
    assert outcome.frame.channels["operations"].count == counts


def test_expected_time_covers_all_measurements(whole: Timed) -> None:
    measurements = len(OF_PACKETS) + 2 * len(ON_SEVERAL_CORES)
    measured_s = measurements * SHORT["seconds"] + 2 * 2 * OPENSSL_S
    assert measured_s < expected_seconds(whole.outcome.parameters) < 4 * whole.seconds
    assert expected_seconds(BenchmarkParameters(cores=2)) == pytest.approx(53, abs=10), "as the documentation says"


def test_curves_and_distributions_show_each_execution(whole: Timed) -> None:
    outcome = whole.outcome
    curves = TRIAL.curves(outcome.parameters, outcome.samples, outcome.samples.events)
    shown = TRIAL.distributions(outcome.parameters, outcome.samples, outcome.samples.events)
    assert {curve.title for curve in curves} == {one.title for one in shown}
    assert [len(one.values) for one in shown] == [outcome.executions(operation) for operation in OF_PACKETS]
    assert all((curve.t_s >= 0).all() for curve in curves)


@pytest.mark.nightly
def test_single_core_without_openssl_leaves_the_rest_out(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", openssl=False, cores=1, curve="p384")
    assert outcome.failure is None
    names = {metric.name for metric in outcome.evaluation.metrics}
    assert "verify_rate" in names and "parse_hash_share" in names
    assert not [name for name in names if "openssl" in name or "two_cores" in name]
    assert not any(metric.labels for metric in outcome.evaluation.metrics)
    assert outcome.frame.channels["measurements"].count == len(OF_PACKETS)


def test_missing_openssl_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    outcome = BenchmarkLab(tmp_path / "run", launcher=RoleThreads()).run(**{**SHORT, "cores": 1})
    assert outcome.failure == ("The program openssl is not there: install it, or switch the comparison with it off.")
    (event,) = outcome.events_named("versions")
    assert event.data["openssl"] == "" and event.message.endswith("the program openssl: not there.")


@pytest.fixture(scope="module", params=[Backend.OPENSSL, Backend.AWS_LC])
def operations(request: pytest.FixtureRequest) -> PacketOperations:
    """Keys, tickets and packets, which take a tenth of a second."""
    return PacketOperations(request.param, Curve.P256, None)


@pytest.mark.parametrize("operation", OF_PACKETS)
def test_operation_is_done_as_often_as_asked(operations: PacketOperations, operation: Measured) -> None:
    for count, threads, expected in ((3, 1, 3), (20, 2, 40)):
        done, took_ns = operations.measure(operation, count, threads)
        assert done == expected and took_ns > 0


def test_operation_is_done_on_each_packet_once(operations: PacketOperations) -> None:
    assert operations.measure(Measured.PARSE_HASH, 5000)[0] == 1024


def test_cold_chain_takes_longer_than_a_known_one(operations: PacketOperations) -> None:
    """Three verifications and two keys against one; the best of ten, so that a busy machine does not matter."""
    known, cold = (
        min(operations.measure(operation, 20)[1] for _ in range(10))
        for operation in (Measured.VERIFY, Measured.VERIFY_COLD)
    )
    assert cold > 1.5 * known


@pytest.mark.nightly
def test_token_signs_and_verifies(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", backend="token", openssl=False)
    assert outcome.failure is None
    assert outcome.figures["verify_rate"] > 0 and not [e for e in outcome.samples.events if e.level is not Level.INFO]


def test_cancelled_benchmark_ends_soon(tmp_path: Path) -> None:
    def cancel(lab: BenchmarkLab) -> None:
        lab.until("measurements", 2)
        lab.cancel()

    lab = BenchmarkLab(tmp_path / "run", launcher=RoleThreads(), during=cancel)
    outcome = lab.run(rounds=100, openssl=False, cores=1, seconds=0.05)
    assert outcome.failure in (None, "Cancelled while role benchmark-0 had to report.")
    assert not outcome.events_named("killed")
    assert {"raw_sign_rate", "raw_verify_rate"} <= set(outcome.figures)
    assert outcome.frame.channels["measurements"].count < 100


@pytest.mark.parametrize(
    ("reference", "other", "label"),
    [
        ({}, {"backend": "aws-lc"}, "AWS-LC against OpenSSL"),
        ({}, {"backend": "token", "token": "office"}, "Token against software"),
        ({"backend": "token"}, {}, ""),
        ({}, {"backend": "aws-lc", "curve": "p384"}, ""),
        ({}, {"rounds": 9}, ""),
    ],
)
def test_backends_under_one_setting_are_a_fair_pair(reference: Any, other: Any, label: str) -> None:
    assert TRIAL.contrast(BenchmarkParameters(**reference), BenchmarkParameters(**other)) == label


def test_warnings_name_tokens_and_too_many_processes() -> None:
    assert TRIAL.warnings(BenchmarkParameters(cores=1)) == ()
    (token,) = TRIAL.warnings(BenchmarkParameters(backend=Backend.TOKEN, cores=1))
    assert token.startswith("Each process opens the token for itself")
    (many,) = TRIAL.warnings(BenchmarkParameters(cores=64))
    assert many == f"More processes (64) than cores ({os.cpu_count()})."
    assert BenchmarkParameters().parallel == os.cpu_count()
