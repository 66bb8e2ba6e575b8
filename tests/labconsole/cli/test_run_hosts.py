"""`labconsole run --hosts FILE`, and the hosts of a run in what `show` prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labconsole.cli.exit_codes import BAD_USAGE
from labconsole.model.placement import Placement, RoleRequest
from labconsole.processes import this_process
from labconsole.profiles.profile import profile_text
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario
from labconsole.store.run_store import Store
from tests.helpers.run_row import MOMENT
from tests.labconsole.cli.conftest import CommandLine

NO_ROLE_OF_THE_TRIAL = "relay-*"
ASKED = Placement(roles=(RoleRequest(role=NO_ROLE_OF_THE_TRIAL, tag="obu"),)).stored()


def test_a_host_list_replaces_the_hosts_of_the_profile(labconsole: CommandLine) -> None:
    """By runs of a trial that stays on this computer: they fail at once, and look for no scheduler."""
    profile = labconsole.profile(profile_text("p", "P", "practice.stations", {}, placement=ASKED))
    (labconsole.folder / "hosts.start").write_text(f"obu-1 {NO_ROLE_OF_THE_TRIAL}\nobu-2 {NO_ROLE_OF_THE_TRIAL}\n")
    labconsole("run", profile, "--db", "runs.db")
    labconsole("run", profile, "--hosts", "hosts.start", "--db", "runs.db")
    with Reader(labconsole.folder / "runs.db") as reader:
        listed = Placement(roles=(RoleRequest(role=NO_ROLE_OF_THE_TRIAL, host=("obu-1", "obu-2")),))
        assert [reader.run(run_id).placement for run_id in (1, 2)] == [ASKED, listed.stored()]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("hosts.start", "obu-1\nobu,2\n", "hosts.start, line 2: 'obu,2' cannot be the name of a host"),
        (
            "hosts.toml",
            "[[roles]]\ncore = 2\n",
            "hosts.toml, line 2: there is no key roles.0.core; did you mean cores?",
        ),
    ],
)
def test_a_mistake_in_a_host_list_is_named_before_a_run_begins(
    labconsole: CommandLine, name: str, text: str, sentence: str
) -> None:
    profile = labconsole.profile(profile_text("p", "P", "practice.counting", {"count": 10}))
    (labconsole.folder / name).write_text(text)
    done = labconsole("run", profile, "--hosts", name, "--db", "runs.db")
    assert done.returncode == BAD_USAGE
    assert sentence in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (labconsole.folder / "runs.db").exists()


def test_show_prints_the_hosts_of_a_run(labconsole: CommandLine, tmp_path: Path) -> None:
    database = tmp_path / "runs.db"
    scenarios = (NewScenario("a", "practice.counting", {}, placement=ASKED), NewScenario("b", "practice.counting", {}))
    with Store.open(database) as store:
        store.add_campaign(NewCampaign("p", "P", "", 1, scenarios, ((0, 1), (1, 1))), this_process(), MOMENT)
    asking, other = (labconsole("show", run, "--db", database).stdout for run in ("1", "2"))
    assert "Hosts: relay-*: tag obu\n" in asking
    assert "Hosts:" not in other
    documents = [json.loads(labconsole("show", run, "--json", "--db", database).stdout) for run in ("1", "2")]
    assert [document["placement"] for document in documents] == [ASKED, {}]
