"""The whole of Table 4-1, live with a queue of 50 and a warm pool: no request is dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from labconsole.model.plugin import Plugins
from labconsole.profiles.profile import load_profile
from tests.labconsole_keypool.live_lab import LiveLab, Outcome, assert_sound


def table_4_1(folder: Path, scenario: int) -> Outcome:
    """A scenario of the profile `keypool-table-4-1`."""
    parameters: dict[str, Any] = dict(
        load_profile("keypool-table-4-1", Plugins.discover()).scenarios[scenario].parameters
    )
    return LiveLab(folder).run(**parameters)


@pytest.mark.nightly
@pytest.mark.serial
@pytest.mark.timeout(600)
def test_table_4_1_at_ten_times_its_speed(tmp_path: Path) -> None:
    outcome = table_4_1(tmp_path / "run", 0)
    assert_sound(outcome)
    assert (outcome.figures["processed"], outcome.figures["dropped"]) == (3000, 0)


@pytest.mark.nightly
@pytest.mark.timeout(5400)
def test_table_4_1_unscaled_with_rsa_keys(tmp_path: Path) -> None:
    outcome = table_4_1(tmp_path / "run", 1)
    assert_sound(outcome)
    assert (outcome.figures["processed"], outcome.figures["dropped"]) == (3000, 0)
    assert "generated" not in outcome.sources, "the pool was warm"
