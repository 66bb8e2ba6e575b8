"""The whole of Table 4-1, live with a queue of 50 and a warm pool: no request is dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from labconsole.model.plugin import Plugins
from labconsole.profiles.profile import load_profile
from tests.labconsole_keypool.imported_keys import fill_with_imported_keys
from tests.labconsole_keypool.live_lab import LiveLab, assert_sound

REQUESTS = 3000
SPARE_KEYS = 100
"""Each signer claims keys in batches of 50, and signs half of the requests or some more: at the end one may have keys
that the other lacks and generates."""


def table_4_1(scenario: int) -> dict[str, Any]:
    """The parameters of a scenario of the profile `keypool-table-4-1`."""
    return dict(load_profile("keypool-table-4-1", Plugins.discover()).scenarios[scenario].parameters)


@pytest.mark.nightly
@pytest.mark.serial
@pytest.mark.timeout(600)
def test_table_4_1_at_ten_times_its_speed(tmp_path: Path) -> None:
    outcome = LiveLab(tmp_path / "run").run(**table_4_1(0))
    assert_sound(outcome)
    assert (outcome.figures["processed"], outcome.figures["dropped"]) == (REQUESTS, 0)


@pytest.mark.nightly
@pytest.mark.timeout(5400)
def test_table_4_1_unscaled_with_rsa_keys(tmp_path: Path) -> None:
    """The keys are imported: the token generates keys in the test above, and RSA keys in `test_generator`."""
    parameters = table_4_1(1)
    fill_with_imported_keys(parameters["key_store"], REQUESTS + SPARE_KEYS)
    outcome = LiveLab(tmp_path / "run").run(**parameters)
    assert_sound(outcome)
    assert (outcome.figures["processed"], outcome.figures["dropped"]) == (REQUESTS, 0)
    assert "generated" not in outcome.sources, "the pool was warm"
