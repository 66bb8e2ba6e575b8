"""A timing profile of the own computer: a real run of the benchmark becomes one, which then is simulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from labconsole.cli.main import main
from labconsole.errors import UserError
from labconsole.model.metrics import Direction, Metric
from labconsole.model.plugin import Plugins
from labconsole.profiles.profile import load_profile
from labconsole_v2x.benchmark.benchmark_parameters import BenchmarkParameters
from labconsole_v2x.choices import Attack
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from labconsole_v2x.simulation.stack_timing import STACK_TIMINGS
from labconsole_v2x.simulation.timing_from_benchmark import timing_from_benchmark
from labconsole_v2x.stations.sending import SecurityMode
from tests.helpers.measured_home import run_in
from tests.helpers.run_row import finished_run
from tests.labconsole_v2x.simulation.simulated_testbed import figures

PROFILE = """
format = 1
kind = "v2x.benchmark"
[parameters]
rounds = 1
seconds = 0.05
openssl = false
cores = 1
"""


@pytest.fixture(scope="module")
def measured_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with one finished run."""
    return run_in(tmp_path_factory.mktemp("home"), PROFILE)


@pytest.fixture
def home(measured_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LABCONSOLE_HOME", str(measured_home))
    return measured_home


def test_one_command_makes_a_profile_that_is_simulated(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["v2x", "timing", "here", "1", "--room", "50"]) == 0
    assert "The timing profile here is in " in capsys.readouterr().out
    here = STACK_TIMINGS.load("here")
    assert here.title.startswith("Software: OpenSSL, by cryptography, NIST P-256, measured 20")
    assert here.reference.startswith("Run 1 of v2x.benchmark: ") and not here.fitted_to
    verified_ms = here.receiver.service_ms[SecurityMode.FULL]
    assert here.receiver.room == 50 and here.receiver.attack_ms[Attack.OLD_TIMESTAMP] < verified_ms / 3
    half = SimulationParameters(senders=100, rate=500 / verified_ms / 100, medium="ideal", timing="here", duration=2)
    assert figures(half, 1)["receiver_load"] == pytest.approx(50, abs=3)
    assert main(["v2x", "timing", "here", "1"]) == 1
    assert "There is a timing profile here already" in capsys.readouterr().err
    assert main(["v2x", "timing", "here", "1", "--replace"]) == 0


def test_campaign_has_this_computer_next_to_other_units(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["v2x", "timing", "mine", "1", "--campaign"]) == 0
    assert "labconsole run v2x-neighbours-mine" in capsys.readouterr().out
    own, given = (load_profile(name, Plugins.discover()) for name in ("v2x-neighbours-mine", "v2x-neighbours"))
    added, others = own.scenarios[:12], own.scenarios[12:]
    assert [one.parameters for one in others] == [one.parameters for one in given.scenarios]
    units = {(one.parameters["timing"], one.parameters["receiver_cores"]) for one in added}
    assert units == {("mine", cores) for cores in (1, 2, 4, 8)}
    assert main(["v2x", "timing", "mine", "1", "--campaign"]) == 1


def test_run_that_is_not_there_is_one_sentence(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["v2x", "timing", "other", "7"]) == 1
    assert "There is no run 7 in " in capsys.readouterr().err


def test_profile_has_the_medians_of_the_run() -> None:
    times = {"sign_time": 0.025, "verify_time": 0.07, "verify_decoded_time": 0.08, "parse_hash_time": 3.0}
    metrics = {name: Metric(name, value, "", Direction.LOWER, 10, {}) for name, value in times.items()}
    stored = BenchmarkParameters().model_dump(mode="json")
    timing = timing_from_benchmark(finished_run(4, "v2x.benchmark", stored, metrics), "Box", 9)
    assert (timing.title, timing.sender.service_ms, timing.receiver.room) == ("Box", 0.025, 9)
    assert timing.receiver.service_ms == {SecurityMode.FULL: 0.08}
    assert timing.receiver.attack_ms[Attack.INVALID_SIGNATURE] == 0.07
    assert timing.receiver.attack_ms[Attack.NO_SIGNATURE] == pytest.approx(0.003)
    assert timing.missing(SecurityMode.NONE, Attack.NONE) == "receiver.service_ms.none"


@pytest.mark.parametrize(
    ("kind", "metrics", "sentence"),
    [
        ("v2x.live", {}, "Run 4 is not a finished run of v2x.benchmark: name one that is."),
        ("v2x.benchmark", {}, "Run 4 has no figure sign_time: run v2x.benchmark again."),
    ],
)
def test_run_without_these_times_is_refused(kind: str, metrics: dict[str, Metric], sentence: str) -> None:
    stored = BenchmarkParameters().model_dump(mode="json")
    with pytest.raises(UserError, match=sentence):
        timing_from_benchmark(finished_run(4, kind, stored, metrics), "", 9)
