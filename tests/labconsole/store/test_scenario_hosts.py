"""The hosts that a scenario asks for are stored, read with its runs, and keep their durations apart from others."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from labconsole.model.placement import Placement, RoleRequest
from labconsole.processes import this_process
from labconsole.store.errors import DamagedDatabaseError
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, RunStatus
from labconsole.store.run_store import Store
from tests.labconsole.store.conftest import PLACED


def test_a_run_and_its_repeat_have_the_hosts_of_their_scenario(
    store: Store, new_runs: list[int], database: Path, now: datetime
) -> None:
    again = store.add_repeat(new_runs[0], this_process(), now)
    with Reader(database) as reader:
        asking, other = reader.run(again), reader.run(new_runs[1])
        assert [row.placement for row in reader.comparable([new_runs[0], again, new_runs[1]])] == [PLACED, PLACED, {}]
    assert asking.placement == PLACED
    assert Placement.of_stored(asking.placement) is not None
    assert asking.row.hosts == "sender-*: host host-a or host-b"
    assert (other.placement, other.row.hosts) == ({}, "")


def test_a_run_is_expected_to_take_as_long_as_those_on_the_same_hosts(
    store: Store, campaign: NewCampaign, database: Path, now: datetime
) -> None:
    asking, _ = campaign.scenarios
    elsewhere = Placement(roles=(RoleRequest(host="host-c"),)).stored()
    with Reader(database) as reader:
        expected = []
        for placement, took_s in ((PLACED, 10), ({}, 20), (elsewhere, 30), (PLACED, 40)):
            scenarios = (replace(asking, placement=placement),)
            [run_id] = store.add_campaign(replace(campaign, scenarios=scenarios, order=((0, 1),)), this_process(), now)
            expected.append(reader.expected_s(reader.run(run_id).row.campaign_id))
            store.run_started(run_id, this_process(), {}, [], now)
            store.run_ended(run_id, RunStatus.FINISHED, "", now + timedelta(seconds=took_s))
    assert expected == [{}, {}, {}, {"Test 1": 10.0}]


@pytest.mark.parametrize("stored", ["[]", "{", '{"roles": [{"cores": -1}]}'])
def test_hosts_that_cannot_be_read_are_damage(store: Store, new_runs: list[int], database: Path, stored: str) -> None:
    with closing(sqlite3.connect(database)) as raw, raw:
        raw.execute("UPDATE scenario SET placement = ? WHERE position = 0", (stored,))
    with Reader(database) as reader, pytest.raises(DamagedDatabaseError) as caught:
        reader.run(new_runs[0])
    assert "hosts of roles: " in str(caught.value) and "\n" not in str(caught.value)
