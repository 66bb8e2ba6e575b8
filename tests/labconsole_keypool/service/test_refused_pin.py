"""A wrong PIN is tried once: the first refusal stops every waiting run that would log in to that token again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from labconsole.model.plugin import Plugins
from labconsole.security.private_files import write_private
from labconsole.security.secrets import Secret
from labconsole.security.token.named_tokens import save_configuration
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from tests.helpers.counted_logins import CountedLogins
from tests.helpers.practice import Bench
from tests.helpers.softhsm_token import create_softhsm_token

SERVICE = "keypool.signing-service"
P_256 = {"key_kind": "p-256", "requests": 2, "rate": 50.0, "arrivals": "constant"}
RIGHT = "1234-user"

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="builds a module that counts logins"),
    pytest.mark.usefixtures("lab_home"),
]


@pytest.fixture
def pin_file(tmp_path: Path) -> Path:
    return tmp_path / "pin"


@pytest.fixture
def logins(tmp_path: Path, pin_file: Path) -> CountedLogins:
    """The token `office`, whose PIN file holds a wrong PIN."""
    counted = CountedLogins(tmp_path / "module")
    token = create_softhsm_token(tmp_path / "office", "office", Secret(RIGHT), Secret("5678-officer"))
    save_configuration("office", counted.through(token, pin_file))
    write_private(pin_file, b"0000-wrong\n")
    return counted


def campaign(*scenarios: dict[str, Any], repeats: int = 1) -> NewCampaign:
    model = Plugins.discover().trial(SERVICE).parameters
    made = tuple(
        NewScenario(f"scenario {number}", SERVICE, model.model_validate({**P_256, **values}).model_dump(mode="json"))
        for number, values in enumerate(scenarios, 1)
    )
    order = tuple((index, repeat) for repeat in range(1, repeats + 1) for index in range(len(made)))
    return NewCampaign("pin", "PIN", "", 1, made, order)


@pytest.mark.parametrize("keys", ["generated", "pool"])
def test_a_refused_pin_stops_the_campaign_and_is_tried_once(
    tmp_path: Path, logins: CountedLogins, pin_file: Path, keys: str
) -> None:
    """With and without a pool of three generators, each of which would log in; runs on other tokens are not stopped."""
    pool = {"keys": "pool", "generators": 3, "pool_at_start": 3} if keys == "pool" else {"keys": "generated"}
    bench = Bench(tmp_path, in_threads=True)
    try:
        office = bench.queue.submit(campaign({"token": "office", **pool}, repeats=3))
        [lab] = bench.queue.submit(campaign({"keys": "generated"}))
        bench.pump_until(lambda: all(item.status.final for item in bench.queue.items[:3]))
        assert logins.count == 1
        first, *later = (bench.detail(run_id).row for run_id in office)
        assert first.status is RunStatus.FAILED and "refuses the PIN" in first.reason
        reason = f"Not started: token office refused its PIN or passphrase in run {first.id}, and another try could "
        assert [(row.status, row.started, row.reason) for row in later] == [
            (RunStatus.CANCELLED, None, f"{reason}lock it. Correct it, then run again.")
        ] * 2
        bench.pump_until_idle()
        assert bench.detail(lab).row.status is RunStatus.FINISHED and logins.count == 1
        assert bench.listener.ends[-1] == (lab, RunStatus.FINISHED) and len(bench.listener.ends) == 4

        write_private(pin_file, f"{RIGHT}\n".encode())
        [again] = bench.queue.submit(campaign({"token": "office", "keys": "generated"}))
        bench.pump_until_idle()
        assert bench.detail(again).row.status is RunStatus.FINISHED, "once corrected, it is tried again"
    finally:
        bench.close()
