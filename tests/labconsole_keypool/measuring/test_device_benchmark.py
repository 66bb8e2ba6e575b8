"""The device benchmark on a real token: operations of Appendix C are done, and unsupported ones reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from labconsole.model.trial import Level
from labconsole.security.token.configuration import TokenConfiguration
from labconsole_keypool.measuring.device_benchmark_evaluation import curves, distributions
from labconsole_keypool.measuring.device_benchmark_parameters import DeviceBenchmarkParameters, RSAOperation
from labconsole_keypool.measuring.device_benchmark_role import DeviceBenchmarkRole
from labconsole_keypool.trials.device_benchmark_trial import DeviceBenchmarkTrial
from tests.helpers.softhsm_token import create_softhsm_token
from tests.labconsole_keypool.token_role import PIN, SO_PIN, TokenRun, run_on_token

TRIAL = DeviceBenchmarkTrial()


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> TokenConfiguration:
    return create_softhsm_token(tmp_path_factory.mktemp("softhsm"), "test", PIN, SO_PIN)


def without_hashing(configuration: TokenConfiguration, folder: Path) -> TokenConfiguration:
    """The same token, which lacks CKM_SHA256_RSA_PKCS. SoftHSM2 takes no notice of the first one in its list."""
    there = Path(configuration.environment["SOFTHSM2_CONF"]).read_text(encoding="utf-8")
    less = folder / "less.conf"
    less.write_text(f"{there}\nslots.mechanisms = -CKM_MD5,CKM_SHA256_RSA_PKCS\n", encoding="utf-8")
    return configuration.model_copy(update={"environment": {"SOFTHSM2_CONF": str(less)}})


def done(configuration: TokenConfiguration, folder: Path, stopped: bool = False, **settings: Any) -> TokenRun:
    parameters = DeviceBenchmarkParameters(
        **{"largest": "1024", "seconds": 0.05, "key_seconds": 0.1, "threads": 2, **settings}
    )
    return run_on_token(TRIAL, DeviceBenchmarkRole, configuration, parameters, folder / "run", stopped=stopped)


def test_every_operation_is_measured_with_every_size(configuration: TokenConfiguration, tmp_path: Path) -> None:
    run = done(configuration, tmp_path, largest="2048")
    assert set(run.figures) == {"throughput", "latency_mean", "key_pairs"} | {
        f"{operation.name.lower()}_{figure} {bits}"
        for operation in RSAOperation
        for figure in ("rate", "latency")
        for bits in (1024, 2048)
    }
    assert all(value > 0 for value in run.figures.values())
    assert run.figures["throughput"] == run.figures["sign_rate 2048"]
    assert run.live["measured"].count == 12
    rows = run.samples.table("operations", "token")
    durations, short = rows["finished"] - rows["started"], rows["bits"] == 1024
    verifying, signing = (short & (rows["operation"] == each) for each in (RSAOperation.VERIFY, RSAOperation.SIGN))
    assert durations[verifying].min() < durations[signing].min(), "a short exponent"
    assert run.live["operations"].count == len(rows["bits"])
    assert set(rows["thread"][rows["operation"] == RSAOperation.KEY_GENERATION]) == {1}
    assert set(rows["thread"][rows["operation"] == RSAOperation.SIGN]) == {1, 2}
    assert not run.events


def test_figures_match_the_recorded_operations(configuration: TokenConfiguration, tmp_path: Path) -> None:
    run = done(configuration, tmp_path)
    rows = run.samples.table("operations", "token")
    chosen = rows["operation"] == RSAOperation.DECRYPT
    started, finished = rows["started"][chosen], rows["finished"][chosen]
    assert run.figures["decrypt_rate 1024"] == pytest.approx(chosen.sum() / (finished.max() - started.min()) * 1e9)
    assert run.figures["decrypt_latency 1024"] == pytest.approx((finished - started).mean() / 1e6)
    shown = {shown.title: shown for shown in distributions(run.samples)}
    assert len(shown["Decrypt, 1024 bit"].values) == chosen.sum()
    lines = [curve for curve in curves(run.samples, int(started.min())) if curve.group == "Decrypt"]
    assert [(line.title, len(line.values)) for line in lines] == [("1024 bit", chosen.sum())]


def test_unsupported_operation_is_reported_and_skipped(configuration: TokenConfiguration, tmp_path: Path) -> None:
    run = done(without_hashing(configuration, tmp_path), tmp_path)
    (event,) = run.events
    assert event.level is Level.WARNING
    assert event.message.startswith("Hash and sign with 1024 bits: left out. The token test cannot hash and sign: it")
    assert "hash_and_sign_rate 1024" not in run.figures
    assert "decrypt_rate 1024" in run.figures
    assert run.live["measured"].count == 6, "the progress comes to its end all the same"


def test_unsupported_key_size_is_reported_and_its_rows_are_empty(
    configuration: TokenConfiguration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SoftHSM2 does all sizes of Appendix C: another size is refused instead."""
    monkeypatch.setattr(DeviceBenchmarkParameters, "sizes", (256, 1024))
    run = done(configuration, tmp_path)
    (event,) = run.events
    assert event.message.startswith(
        "RSA keys of 256 bits: left out. The token test cannot generate an RSA key pair of 256"
    )
    assert {name.rpartition(" ")[2] for name in run.figures} == {"1024"}
    assert run.live["measured"].count == 12, "the progress comes to its end all the same"


def test_a_cancelled_benchmark_ends_soon(configuration: TokenConfiguration, tmp_path: Path) -> None:
    assert done(configuration, tmp_path, stopped=True).metrics == ()


def test_contrast_compares_more_threads_with_fewer() -> None:
    four, one = DeviceBenchmarkParameters(), DeviceBenchmarkParameters(threads=1)
    assert TRIAL.contrast(one, four) == "Threads: 4 against 1"
    assert TRIAL.contrast(four, one) == ""
