"""Profiles: what they say, what they extend, their matrix and overrides, and one clear sentence for each mistake."""

from __future__ import annotations

import importlib
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from labconsole.model.placement import Placement, RoleRequest
from labconsole.model.plugin import Plugins
from labconsole.profiles.profile import (
    Profile,
    ProfileError,
    campaign_of,
    list_profiles,
    load_profile,
    profile_text,
    rotated,
    save_profile,
    scenarios_text,
    shuffled,
    user_profiles_dir,
    with_edits,
)
from tests.helpers.practice import PLUGIN

Load = Callable[..., Profile]
HEAD = 'format = 1\nkind = "practice.counting"\n'
HOSTS = '[hosts]\nlocal = 3\n[[hosts.roles]]\nrole = "counter-*"\ntag = "obu"\n'
PLACED = Placement(local=3, roles=(RoleRequest(role="counter-*", tag="obu"),)).stored()


@pytest.fixture(scope="module")
def plugins() -> Iterator[Plugins]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PLUGIN))
        importlib.invalidate_caches()
        found = Plugins.discover()
        found.trial("practice.counting")
        yield found
    sys.modules.pop("practice_trial", None)


@pytest.fixture
def load(plugins: Plugins, tmp_path: Path) -> Load:
    """Writes a profile `p.toml` (and others next to it) and loads it."""

    def load(text: str, overrides: dict[str, str] | None = None, repeats: int | None = None, **others: str) -> Profile:
        for name, other in others.items():
            (tmp_path / f"{name}.toml").write_text(other, encoding="utf-8")
        (tmp_path / "p.toml").write_text(text, encoding="utf-8")
        return load_profile(str(tmp_path / "p.toml"), plugins, overrides, repeats)

    return load


def _placements(profile: Profile) -> list[Mapping[str, Any]]:
    return [scenario.placement for scenario in campaign_of(profile).scenarios]


def _values(profile: Profile, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(scenario.parameters[name] for name in names) for scenario in profile.scenarios]


def test_a_profile_without_scenarios_is_one_with_complete_parameters(load: Load) -> None:
    profile = load(HEAD + "[parameters]\ncount = 5\n")
    [scenario] = profile.scenarios
    assert (profile.name, profile.title, profile.repeats, profile.seed) == ("p", "p", 1, 1)
    assert (scenario.name, scenario.kind) == ("p", "practice.counting")
    assert scenario.parameters["count"] == 5 and scenario.parameters["roles"] == 1


def test_a_matrix_is_every_combination_of_every_scenario(load: Load) -> None:
    profile = load(
        HEAD
        + "[matrix]\ncount = [1, 2]\nrate = [0.5]\n"
        + '[[scenarios]]\nname = "a"\nparameters = { roles = 2 }\n[[scenarios]]\nname = "b"\n'
    )
    assert _values(profile, "count", "rate", "roles") == [(1, 0.5, 2), (2, 0.5, 2), (1, 0.5, 1), (2, 0.5, 1)]
    assert profile.scenarios[1].name == "a count=2 rate=0.5"


def test_scenarios_that_are_queued_together_are_a_profile_of_their_own(load: Load) -> None:
    before = load(HEAD + "[parameters]\ncount = 7\n[matrix]\nroles = [1, 2]\n[thresholds]\ncounted = { min = 5.0 }\n")
    text = scenarios_text("both", "Both", before.scenarios, repeats=3, seed=9)
    assert tomllib.loads(text)["scenarios"][1]["parameters"] == {"roles": 2}, "the rest is common"
    after = load(text)
    assert (after.scenarios, after.repeats, after.seed) == (before.scenarios, 3, 9)


def test_a_rotated_campaign_begins_each_round_with_the_next_scenario(load: Load) -> None:
    profile = load(HEAD + 'order = "rotated"\nrepeats = 4\n[matrix]\ncount = [1, 2, 3]\n')
    assert campaign_of(profile).order == rotated(3, 4)
    rounds = [[index for index, repeat in rotated(3, 4) if repeat == round_] for round_ in (1, 2, 3, 4)]
    assert rounds == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]
    with pytest.raises(ProfileError, match="order: input should be 'shuffled' or 'rotated'"):
        load(HEAD + 'order = "sorted"\n')


def test_repeats_are_interleaved_and_shuffled_by_the_seed() -> None:
    order = shuffled(4, 30, seed=7)
    assert order == shuffled(4, 30, seed=7) != shuffled(4, 30, seed=8)
    rounds = [order[start : start + 4] for start in range(0, 120, 4)]
    assert [index for index, _ in rounds[0]] == [0, 1, 2, 3], "the first round is in the profile's order"
    for repeat, round_ in enumerate(rounds, 1):
        assert sorted(round_) == [(index, repeat) for index in range(4)]
    assert len({tuple(index for index, _ in round_) for round_ in rounds}) > 10
    first = Counter(round_[0][0] for round_ in rounds[1:])
    assert max(first.values()) < 20, "no scenario is always the first"


def test_a_campaign_carries_order_thresholds_and_sites(load: Load) -> None:
    profile = load(
        HEAD
        + 'title = "T"\nrepeats = 2\nseed = 3\n[thresholds]\ncounted = { min = 1 }\n'
        + '[[scenarios]]\nname = "a"\n[[scenarios]]\nname = "b"\nthresholds = { checksum = { max = 9.5 } }\n'
        + '[[sites]]\nname = "Malaysia"\ntls_port = 5671\n'
    )
    campaign = campaign_of(profile)
    assert (campaign.name, campaign.title, campaign.order_seed) == ("p", "T", 3)
    assert campaign.order == shuffled(2, 2, 3)
    assert [scenario.thresholds for scenario in campaign.scenarios] == [
        {"counted": {"min": 1.0}},
        {"counted": {"min": 1.0}, "checksum": {"max": 9.5}},
    ]
    assert campaign.sites == ({"name": "Malaysia", "tls_port": "5671"},)


def test_hosts_of_a_scenario_replace_those_of_its_profile(load: Load) -> None:
    profile = load(
        HEAD
        + '[[scenarios]]\nname = "spread"\n[[scenarios]]\nname = "here"\nhosts = {}\n[[scenarios]]\nname = "one"\n'
        + '[[scenarios.hosts.roles]]\nhost = ["a", "b"]\n'
        + HOSTS
    )
    one = Placement(roles=(RoleRequest(host=("a", "b")),)).stored()
    assert _placements(profile) == [PLACED, {}, one], "nothing of the profile's table is left in the scenario's"
    assert load(profile.text).scenarios == profile.scenarios


def test_hosts_of_the_extending_profile_replace_those_of_the_base(load: Load) -> None:
    own = '[[hosts.roles]]\nhost = "b"\n'
    assert _placements(load('format = 1\nextends = "base"\n', base=HEAD + HOSTS)) == [PLACED]
    [placement] = _placements(load('format = 1\nextends = "base"\n' + own, base=HEAD + HOSTS))
    assert placement == Placement(roles=(RoleRequest(host="b"),)).stored()
    assert _placements(load('format = 1\nextends = "base"\nhosts = {}\n', base=HEAD + HOSTS)) == [{}]


def test_a_host_list_replaces_the_hosts_of_all_scenarios(load: Load, plugins: Plugins, tmp_path: Path) -> None:
    load(HEAD + '[[scenarios]]\nname = "a"\n[[scenarios]]\nname = "b"\nhosts = {}\n' + HOSTS)
    given = Placement(roles=(RoleRequest(host="c"),))
    profile = load_profile(str(tmp_path / "p.toml"), plugins, hosts=given)
    assert _placements(profile) == [given.stored()] * 2
    assert load(profile.text).scenarios == profile.scenarios, "the stored text says so, too"


def test_edits_keep_the_hosts_of_each_scenario(load: Load, plugins: Plugins) -> None:
    profile = load(HEAD + '[[scenarios]]\nname = "a"\n[[scenarios]]\nname = "b"\nhosts = {}\n' + HOSTS)
    edited = with_edits(profile, "Edited", {"count": 7}, (), plugins.trial("practice.counting"))
    assert _placements(edited) == [PLACED, {}]
    assert load(edited.text).scenarios == edited.scenarios


@pytest.mark.parametrize("placement", [PLACED, {}])
def test_saved_hosts_load_to_the_same(load: Load, placement: Mapping[str, Any]) -> None:
    text = profile_text("p", "P", "practice.counting", {}, placement=placement)
    assert _placements(load(text)) == [placement]
    assert ("hosts" in tomllib.loads(text)) == bool(placement)


def test_extends_provides_values_that_are_not_set(load: Load) -> None:
    base = HEAD + 'title = "Base"\nseed = 9\n[parameters]\ncount = 1\nroles = 2\n[[sites]]\nname = "A"\n'
    profile = load('format = 1\nextends = "base"\n[parameters]\ncount = 3\n', base=base)
    assert (profile.name, profile.title, profile.seed, profile.sites[0].name) == ("p", "Base", 9, "A")
    assert _values(profile, "count", "roles") == [(3, 2)]


def test_a_fixed_parameter_replaces_a_varied_one_of_the_base_and_the_other_way_round(load: Load) -> None:
    base = HEAD + "[parameters]\nroles = 2\n[matrix]\ncount = [1, 2]\nrate = [1, 2]\n"
    fixed = load('format = 1\nextends = "base"\n[parameters]\ncount = 3\n[matrix]\nroles = [1, 2]\n', base=base)
    assert sorted(_values(fixed, "count", "roles", "rate")) == [(3, 1, 1), (3, 1, 2), (3, 2, 1), (3, 2, 2)]


def test_one_s_own_profile_may_extend_the_built_in_one_of_its_name(plugins: Plugins) -> None:
    save_profile("demo", 'format = 1\nextends = "demo"\ntitle = "Mine"\n[parameters]\ncredit = 77\n')
    profile = load_profile("demo", plugins)
    assert profile.title == "Mine" and len(profile.scenarios) == 4
    assert {scenario.parameters["credit"] for scenario in profile.scenarios} == {77}
    [info] = [info for info in list_profiles() if info.name == "demo"]
    assert not info.builtin and info.title == "Mine"


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("count", "250", 250),
        ("count", "1_000", 1000),
        ("rate", "2.5", 2.5),
        ("rate", "3", 3.0),
        ("word", "plain words", "plain words"),
        ("word", "123", "123"),
        ("word", "true", "true"),
        ("word", "2026-01-01", "2026-01-01"),
        ("word", '"quoted"', "quoted"),
        ("word", "a=b", "a=b"),
        ("word", "", ""),
        ("fault", "slow prepare", "slow prepare"),
    ],
)
def test_overrides_are_read_by_the_type_of_the_parameter(load: Load, key: str, text: str, value: object) -> None:
    assert _values(load(HEAD, {key: text}), key) == [(value,)]


def test_an_override_wins_over_scenario_and_matrix(load: Load) -> None:
    text = HEAD + '[matrix]\ncount = [1, 2]\n[[scenarios]]\nname = "a"\nparameters = { roles = 3 }\n'
    profile = load(text, {"count": "9", "roles": "2"}, repeats=4)
    assert _values(profile, "count", "roles") == [(9, 2)] and profile.repeats == 4


def test_the_stored_text_loads_to_the_same_scenarios(load: Load, plugins: Plugins, tmp_path: Path) -> None:
    """The stored profile of a campaign is complete: extended, with its overrides applied."""
    base = (
        HEAD + "[parameters]\nroles = 2\n[matrix]\ncount = [1, 2]\nrate = [1, 2]\n[thresholds]\ncounted = {min = 1}\n"
    )
    text = (
        'format = 1\nextends = "base"\n[[scenarios]]\nname = "a"\nparameters = { word = "x" }\n[[sites]]\nname = "S"\n'
    )
    profile = load(text, {"count": "5", "word": "\u00fcber"}, repeats=3, base=base)
    alone = tmp_path / "alone" / "p.toml"
    alone.parent.mkdir()
    alone.write_text(profile.text, encoding="utf-8")
    again = load_profile(str(alone), plugins)
    assert again == profile
    assert again.scenarios[0].parameters["word"] == "\u00fcber"


def test_a_profile_s_file_may_have_any_name(plugins: Plugins, tmp_path: Path) -> None:
    path = tmp_path / "Mein Versuch (2) \u00e9.toml"
    path.write_text(HEAD, encoding="utf-8")
    assert load_profile(str(path), plugins).name == "Mein Versuch (2) \u00e9"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("format = 2\n", "has format 2; this console reads `format = 1`."),
        ('kind = "x"\n', "has format none"),
        ("format = = 1\n", "is not valid TOML: "),
        ("format = 1\n", "Profile p.toml: the key kind is missing."),
        ('format = 1\nkind = "practice.count"\n', "no trial is called practice.count; did you mean practice.counting?"),
        ('format = 1\nkind = "practice.lost"\n', "the trial practice.lost cannot be loaded: No module named"),
        (HEAD + "repeat = 3\n", "there is no key repeat; did you mean repeats?"),
        (HEAD + "repeats = 0\n", "repeats: input should be greater than or equal to 1 (it is 0)."),
        (HEAD + "[parameters]\ncuont = 1\n", "there is no key cuont; did you mean count?"),
        (
            HEAD + "[parameters]\nzzz = 1\n",
            "there is no key zzz; there are: count, fault, patience, rate, roles, word.",
        ),
        (HEAD + "[parameters]\ncount = 0\n", "count: input should be greater than or equal to 1 (it is 0)."),
        (HEAD + "parameters = 3\n", "parameters: input should be a valid dictionary (it is 3)."),
        (HEAD + "[matrix]\ncount = 3\n", 'matrix.count: input should be a list, such as [1, 2] or ["a"] (it is 3).'),
        (HEAD + "[matrix]\ncount = []\n", "matrix.count: list should have at least 1 item after validation, not 0."),
        (HEAD + "[matrix]\ncuont = [1]\n", "there is no key cuont; did you mean count?"),
        (HEAD + "[parameters]\ncount = 1\n[matrix]\ncount = [1]\n", "count is in the matrix and in parameters"),
        (HEAD + "[[scenarios]]\nname = 'a'\n[[scenarios]]\nname = 'a'\n", "two scenarios are called 'a'"),
        (HEAD + "[[scenarios]]\nname = 'a'\nparametres = {}\n", "scenarios.0.parametres; did you mean parameters?"),
        (HEAD + "[[sites]]\nname = 'a'\ntls_prot = 1\n", "sites.0.tls_prot; did you mean tls_port?"),
        (HEAD + "[thresholds]\ncounted = { mim = 1 }\n", "thresholds.counted.mim; did you mean min?"),
        (HEAD + "[thresholds]\ncounted = { min = 2, max = 1 }\n", "thresholds.counted: min 2 is above max 1."),
        (HEAD + "[thresholds]\ncounted = {}\n", "thresholds.counted: give min, max or both."),
        (HEAD + "[thresholds]\ncuonted = { min = 1 }\n", "no metric is called cuonted; did you mean counted?"),
        (HEAD + "hosts = 3\n", "hosts: input should be a table (it is 3)."),
        (HEAD + "[hosts]\nlocla = 3\n", "there is no key hosts.locla; did you mean local?"),
        (HEAD + "[hosts]\nlocal = 3\n", "hosts: local has no effect without roles; name them in [[hosts.roles]]."),
        (HEAD + "[hosts]\nlocal = 21\n", "hosts.local: input should be less than or equal to 20 (it is 21)."),
        (HEAD + "[[hosts.roles]]\ncore = 1\n", "there is no key hosts.roles.0.core; did you mean cores?"),
        (HEAD + "[[hosts.roles]]\nhost = 1\n", "hosts.roles.0.host: give the name of a host, or a list of names."),
        (
            HEAD + "[[scenarios]]\nname = 'a'\nhosts = { scheduler = 'tls://a:1' }\n",
            "scenarios.0.hosts: scheduler has no effect without roles; name them in [[hosts.roles]].",
        ),
        (HEAD + "repeats = 1000\n[matrix]\ncount = [1,2,3,4,5,6,7,8,9,10,11]\n", "it asks for 11,000 runs"),
        ("format = 1\nextends = 'p'\n", "extends itself by way of p"),
        ("format = 1\nextends = 'dmo'\n", "No profile is called dmo; did you mean demo?"),
        ("format = 1\nextends = 'demo'\nparameters = 3\n", "parameters must be a table, as in [parameters] (it is 3)."),
    ],
)
def test_each_mistake_in_a_profile_is_one_sentence(load: Load, text: str, sentence: str) -> None:
    with pytest.raises(ProfileError) as caught:
        load(text)
    assert sentence in str(caught.value) and "\n" not in str(caught.value).strip()
    assert "p.toml" in str(caught.value) or "No profile is called" in str(caught.value)


def test_profiles_that_extend_each_other_are_refused(load: Load) -> None:
    with pytest.raises(ProfileError, match="extends itself by way of p"):
        load('format = 1\nextends = "q"\n', q='format = 1\nextends = "r"\n', r='format = 1\nextends = "p"\n')


def test_a_broken_profile_is_listed_with_its_error() -> None:
    user_profiles_dir().mkdir(parents=True)
    (user_profiles_dir() / "broken.toml").write_bytes(b"\xff\xfe")
    infos = {info.name: info for info in list_profiles()}
    assert "is not valid TOML" in infos["broken"].error
    assert infos["demo"].builtin and not infos["demo"].error and infos["demo"].kind == "amqp.messaging"


def test_every_built_in_profile_loads(plugins: Plugins) -> None:
    counts = {info.name: len(load_profile(info.name, plugins).scenarios) for info in list_profiles() if info.builtin}
    assert counts["demo"] == 4 and counts["swim-within-malaysia"] == 12 and counts["swim-my-sg"] == 9


def test_saved_parameters_load_to_the_same(plugins: Plugins) -> None:
    parameters = {"count": 7, "rate": 0.1 + 0.2, "word": 'quote " and \\ and \u00fc'}
    path = save_profile("mine", profile_text("mine", "Mine", "practice.counting", {**parameters, "none": None}, 5))
    profile = load_profile("mine", plugins)
    assert path.parent == user_profiles_dir() and profile.repeats == 5
    assert {key: profile.scenarios[0].parameters[key] for key in parameters} == parameters
    assert tomllib.loads(path.read_text(encoding="utf-8"))["title"] == "Mine"


def test_a_saved_profile_is_replaced_only_when_asked(plugins: Plugins) -> None:
    save_profile("mine", HEAD)
    with pytest.raises(ProfileError, match="exists already"):
        save_profile("mine", HEAD + "repeats = 2\n")
    save_profile("mine", HEAD + "repeats = 2\n", replace=True)
    assert load_profile("mine", plugins).repeats == 2
    for name in ("", "Mine", "../mine", "a b", "-x"):
        with pytest.raises(ProfileError, match="cannot be a profile's name"):
            save_profile(name, HEAD)


def test_profile_that_cannot_be_written_is_reported_and_leaves_no_file(plugins: Plugins) -> None:
    user_profiles_dir().parent.mkdir(parents=True, exist_ok=True)
    user_profiles_dir().write_text("a file where the folder should be")
    with pytest.raises(ProfileError, match=r"cannot be written to .*mine.toml"):
        save_profile("mine", HEAD)
    user_profiles_dir().unlink()
    (user_profiles_dir() / "mine.toml").mkdir(parents=True)
    with pytest.raises(ProfileError, match=r"cannot be written to .*mine.toml"):
        save_profile("mine", HEAD, replace=True)
    assert [path.name for path in user_profiles_dir().iterdir()] == ["mine.toml"]
