"""A timing profile of an own device: real runs on the lab's token become one, which then is simulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from labconsole.cli.main import main
from labconsole.profiles.timing_profile import load_timing
from labconsole_keypool.simulation.simulation_parameters import SimulationParameters
from tests.helpers.measured_home import run_in

PROFILE = """
format = 1
kind = "keypool.step-times"

[parameters]
distinct = 2
key_kind = "p-256"

[[scenarios]]
name = "generate"
parameters = { step = "generate", keys = 30 }

[[scenarios]]
name = "wrap"
parameters = { step = "wrap-and-save", keys = 10, batch = 1 }

[[scenarios]]
name = "unwrap"
parameters = { step = "load-and-unwrap", keys = 10 }

[[scenarios]]
name = "sign"
parameters = { step = "sign", keys = 30 }

[[scenarios]]
name = "two threads"
parameters = { step = "sign", keys = 30, threads = 2 }
"""


@pytest.fixture(scope="module")
def measured_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with one finished campaign: runs 1 to 5."""
    return run_in(tmp_path_factory.mktemp("home"), PROFILE)


@pytest.fixture
def home(measured_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LABCONSOLE_HOME", str(measured_home))
    return measured_home


def test_one_command_makes_a_profile_that_is_simulated(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hsm", "timing", "office", "1", "--campaign", "--ram", "500"]) == 0
    assert "The timing profile office is in " in capsys.readouterr().out
    office = load_timing("office")
    assert office.title.startswith("Token lab, p-256, measured 20")
    assert list(office.sign) == ["normal"] and len(office.sign["normal"].distribution) == 10
    assert [row.threads for row in office.sign_by_threads.rows] == [1, 2]
    assert office.ram.key_pairs == 500 and office.store.reference.startswith("Assumed")
    assert office.unwrap.reference == "Run 3: load-and-unwrap, 10 keys"
    scenario = SimulationParameters.model_validate({"timing": "office", "keys_at_start": 0, "low_water": 1, "batch": 5})
    assert scenario.sign == "normal", "it has not the usual one"
    model = scenario.service_model()
    assert model.sign_ms == pytest.approx(office.sign["normal"].ms) and model.sign_factors is not None
    assert main(["hsm", "timing", "office", "1", "--campaign"]) == 1
    assert "There is a timing profile office already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentences"),
    [
        (["1", "2"], ["No run times the step 'load and unwrap'", "No run times the step 'sign with one thread'"]),
        (["1", "99"], ["There is no run 99 in "]),
    ],
)
def test_each_missing_step_has_a_sentence(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentences: list[str]
) -> None:
    assert main(["hsm", "timing", "other", *arguments]) == 1
    error = capsys.readouterr().err
    assert all(sentence in error for sentence in sentences) and len(error.splitlines()) == 1
    assert not (home / "profiles" / "timing" / "other.toml").exists()
