"""Table 4.2 of PRESERVE D3.2, simulated: how far from the printed rows, and that the figures come from the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from labconsole.paths import profiles_dir
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from tests.labconsole_v2x.simulation.simulated_testbed import Row, figures, rows_of_table_4_2

TIMING = "nexcom-vtc6201-table42"
ATTACKED = {"attack": "a-sig-01", "attackers": 2, "attack_rate": 50.0}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return list(rows_of_table_4_2((1, 2)))


def test_six_rows_are_fitted_and_eight_are_held_out(rows: list[Row]) -> None:
    fitted = {row.name for row in rows if row.fitted}
    assert {"a-sig-01-2-10", "a-sig-01-2-50", "a-sig-01-4-100"} < fitted
    assert len(rows) == 14 and len(fitted) == 6
    assert {row.name[:8] for row in rows if row.fitted} == {row.name[:8] for row in rows}


def test_share_of_benign_packets_is_that_of_the_source(rows: list[Row]) -> None:
    assert max(abs(row.error("benign_share")) for row in rows) <= 0.3


def test_loss_is_that_of_the_source_in_all_rows_but_one(rows: list[Row]) -> None:
    """A-SIG-06 with 2 attackers at 50 Hz lost as much as A-SIG-01, though its other rows lost less."""
    assert [row.name for row in rows if abs(row.error("packet_loss")) > 1.5] == ["a-sig-06-2-50"]


def test_delay_is_near_that_of_the_source(rows: list[Row]) -> None:
    errors = [abs(row.delay_error) for row in rows]
    held_out = [abs(row.delay_error) for row in rows if not row.fitted]
    assert sum(errors) / 14 <= 8 and sum(held_out) / 8 <= 9 and max(held_out) <= 22


def changed(home: Path, name: str, *changes: tuple[str, str]) -> str:
    """An own timing profile, the published one with these texts replaced."""
    text = (profiles_dir() / "v2x-timing" / f"{TIMING}.toml").read_text(encoding="utf-8")
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    folder = home / "profiles" / "v2x-timing"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return name


def test_figures_follow_the_timing_profile_and_the_attackers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing published is looked up: a faster stack, half the room and a third attacker move the figures."""
    monkeypatch.setenv("LABCONSOLE_HOME", str(tmp_path))
    usual = figures(SimulationParameters.model_validate(ATTACKED), 1)
    fast = changed(tmp_path, "fast", ("full = 8.0", "full = 4.0"), ("a-sig-01 = 8.0", "a-sig-01 = 4.0"))
    found = figures(SimulationParameters.model_validate({**ATTACKED, "timing": fast}), 1)
    assert found["packet_loss"] < 1 and found["latency_mean"] < usual["latency_mean"] / 2
    assert found["receiver_load"] == pytest.approx(150 * 4 / 10, rel=0.02)
    small = changed(tmp_path, "small", ("room = 7", "room = 3"))
    found = figures(SimulationParameters.model_validate({**ATTACKED, "timing": small}), 1)
    assert found["packet_loss"] > usual["packet_loss"] + 3 and found["latency_mean"] < usual["latency_mean"] * 0.65
    found = figures(SimulationParameters.model_validate({**ATTACKED, "attackers": 3}), 1)
    assert found["packet_loss"] > usual["packet_loss"] + 15
    assert found["benign_share"] == pytest.approx(100 * 50 / 200, abs=0.3)


def test_cheap_rejection_leaves_the_receiver_to_benign_stations() -> None:
    dear = figures(SimulationParameters.model_validate(ATTACKED), 1)
    cheap = figures(SimulationParameters.model_validate({**ATTACKED, "attack": "a-sig-03"}), 1)
    assert cheap["packet_loss"] < 0.5 < 15 < dear["packet_loss"]
    assert cheap["rejected_time"] == pytest.approx(100 * 0.3 / 10, rel=0.02)
    assert dear["rejected_time"] > 60 and dear["receiver_load"] > 95


def test_same_seed_gives_the_same_run_and_another_one_another() -> None:
    parameters = SimulationParameters.model_validate(ATTACKED)
    assert figures(parameters, 1) == figures(parameters, 1) != figures(parameters, 2)
