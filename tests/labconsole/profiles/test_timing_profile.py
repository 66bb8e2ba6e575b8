"""Timing profiles: the thesis' values, values of an extended profile, and sentences on faults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labconsole.errors import UserError
from labconsole.paths import profiles_dir
from labconsole.profiles import timing_files
from labconsole.profiles.profile import list_profiles
from labconsole.profiles.timing_profile import (
    RangeEnd,
    ThreadDuration,
    ThreadDurations,
    load_timing,
    save_timing,
    sign_names,
    timing_names,
)
from labconsole_keypool.choices import SignTime

LUNA = (profiles_dir() / "timing" / "luna-sa-1700.toml").read_text(encoding="utf-8")


def test_timing_profiles_are_found_and_are_not_profiles_of_trials() -> None:
    assert timing_names() == ("luna-sa-1700", "luna-sa-1700-fig4-1", "luna-sa-1700-remote")
    assert not set(timing_names()) & {profile.name for profile in list_profiles()}


def test_the_values_are_those_of_the_thesis() -> None:
    luna = load_timing("luna-sa-1700")
    assert [luna.key_generation.at(end) for end in RangeEnd] == [588, 673]
    assert luna.unwrap.ms == 70
    assert {time: luna.sign[time].ms for time in SignTime} == {
        SignTime.MALMO: 20,
        SignTime.STOCKHOLM: 43,
        SignTime.STOCKHOLM_BASE_RATE: 38,
        SignTime.WHILE_UNWRAPPING: 21.432,
    }
    assert (luna.ram.key_pairs, luna.store.key_pairs) == (12_033, 20_000)
    references = [value.reference for value in (luna.key_generation, luna.unwrap, luna.ram, luna.store)]
    assert all(word in " ".join(references) for word in ("4.5.3", "2.10.1", "Table 2-7", "2.9.6", "Table 2-2"))
    assert "Table 2-11" in luna.sign[SignTime.WHILE_UNWRAPPING].reference


def test_the_profile_of_fig_4_1_differs_in_its_key_generation_alone() -> None:
    luna, slow = load_timing("luna-sa-1700"), load_timing("luna-sa-1700-fig4-1")
    assert [slow.key_generation.at(end) for end in RangeEnd] == pytest.approx([1000 / 1.3] * 2, abs=0.5)
    assert "Appendix C" in slow.key_generation.reference
    alike = {"title": slow.title, "key_generation": slow.key_generation}
    assert luna.model_copy(update=alike) == slow


@pytest.mark.parametrize(("threads", "ms_a_signature"), [(1, 43), (2, 15), (4, 6.9), (7, 6.85), (50, 6.6), (100, 6.6)])
def test_threads_together_sign_as_fast_as_in_table_2_10(threads: int, ms_a_signature: float) -> None:
    luna = load_timing("luna-sa-1700")
    assert luna.sign_ms(SignTime.STOCKHOLM, threads) / threads == pytest.approx(ms_a_signature)
    assert luna.sign_ms(SignTime.MALMO, threads) / threads == pytest.approx(ms_a_signature * 20 / 43)


def test_a_device_at_the_other_site_answers_a_round_trip_later() -> None:
    luna, remote = load_timing("luna-sa-1700"), load_timing("luna-sa-1700-remote")
    for threads in (1, 4):
        there, here = (profile.sign_ms(SignTime.MALMO, threads) for profile in (remote, luna))
        assert there - here == pytest.approx(20)


def test_threads_sign_by_the_table_of_the_profile() -> None:
    luna = load_timing("luna-sa-1700")
    rows = (ThreadDuration(threads=1, ms=10), ThreadDuration(threads=2, ms=8))
    slower = luna.model_copy(update={"sign_by_threads": ThreadDurations(rows=rows, reference="none")})
    assert [slower.sign_ms(SignTime.MALMO, threads) for threads in (1, 2, 4)] == pytest.approx([20, 32, 64])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("luna-sa-1800", "No timing profile is called luna-sa-1800; did you mean luna-sa-1700?"),
        ("zzz", "No timing profile is called zzz; there are: luna-sa-1700, luna-sa-1700-fig4-1, luna-sa-1700-remote."),
        ("../demo", "No timing profile is called ../demo; "),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        load_timing(name)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("wrong", "right", "said"),
    [
        ("[unwrap]", "[unwarp]", r"the key unwrap is missing: ms to load one wrapped key and unwrap it, and the"),
        ("[unwrap]\nms = 70", "[unwrap]\nms = -1", r"unwrap\.ms: .*greater than 0 \(it is -1\)\.$"),
        ("[unwrap]\nms = 70", "[unwrap]\nms = 0", r"unwrap\.ms: .*greater than 0 \(it is 0\)\.$"),
        ("[unwrap]\nms = 70", "[unwrap]\nms = inf", r"unwrap\.ms: .*finite number \(it is inf\)\.$"),
        ("[unwrap]\n", "[unwrap]\nseconds = 1\n", r"there is no key unwrap\.seconds"),
        (
            "{ threads = 4, ms = 6.9 }",
            "{ threads = 2, ms = 6.9 }",
            r"sign_by_threads\.rows: .* more in each further row",
        ),
        ("title = ", "title = = ", r"luna\.toml cannot be read: .*\.$"),
    ],
)
def test_a_fault_in_a_profile_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, right: str, said: str
) -> None:
    assert wrong in LUNA
    (tmp_path / "timing").mkdir()
    (tmp_path / "timing" / "luna.toml").write_text(LUNA.replace(wrong, right), encoding="utf-8")
    monkeypatch.setattr(timing_files, "profiles_dir", lambda: tmp_path)
    with pytest.raises(UserError, match=said) as caught:
        load_timing("luna")
    assert "luna" in str(caught.value)


def own_profile(home: Path, name: str, text: str) -> None:
    (home / "profiles" / "timing").mkdir(parents=True, exist_ok=True)
    (home / "profiles" / "timing" / f"{name}.toml").write_text(text, encoding="utf-8")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LABCONSOLE_HOME", str(tmp_path))
    return tmp_path


OWN = """
extends = "luna-sa-1700"
title = "The office's device"

[sign.normal]
ms = 10
reference = "measured"
distribution = [
    { part = 0, ms = 5 },
    { part = 0.5, ms = 8 },
    { part = 1, ms = 31 },
]
"""


def test_an_operator_s_own_profile_is_found_with_its_own_names_of_signing_times(home: Path) -> None:
    own_profile(home, "office", OWN)
    assert "office" in timing_names() and "normal" in sign_names()
    office = load_timing("office")
    assert list(office.sign) == ["normal"] and office.sign_ms("normal", 1) == 10
    assert office.unwrap.ms == 70, "of the profile that it extends"


def test_a_published_name_stays_the_published_profile(home: Path) -> None:
    own_profile(home, "luna-sa-1700", OWN.replace("extends", "title2 = 1 #"))
    assert load_timing("luna-sa-1700").sign_ms("malmo", 1) == 20
    with pytest.raises(UserError, match="The timing profile luna-sa-1700 comes with the console: choose another name"):
        save_timing("luna-sa-1700", load_timing("luna-sa-1700"))


def test_a_saved_profile_is_read_as_it_was_and_not_replaced_unasked(home: Path) -> None:
    own_profile(home, "office", OWN)
    path = save_timing("copy", load_timing("office"))
    assert path == home / "profiles" / "timing" / "copy.toml"
    assert load_timing("copy") == load_timing("office")
    with pytest.raises(UserError, match="There is a timing profile copy already"):
        save_timing("copy", load_timing("luna-sa-1700"))
    save_timing("copy", load_timing("luna-sa-1700"), replace=True)
    assert load_timing("copy") == load_timing("luna-sa-1700")
    with pytest.raises(UserError, match=r"'\.\./x' is not a name"):
        save_timing("../x", load_timing("office"))


def test_every_missing_field_has_a_sentence(home: Path) -> None:
    own_profile(home, "office", 'title = "x"\n[unwrap]\nms = 3\n')
    with pytest.raises(UserError) as caught:
        load_timing("office")
    message = str(caught.value)
    assert message.startswith("Timing profile office: the key key_generation is missing: shortest_ms and longest_ms")
    for name in ("unwrap.reference", "sign", "sign_by_threads", "ram", "store"):
        assert f"The key {name} is missing" in message
    assert message.count(" is missing") == 6


def test_a_profile_that_extends_itself_is_a_sentence(home: Path) -> None:
    own_profile(home, "a", 'extends = "b"')
    own_profile(home, "b", 'extends = "a"')
    with pytest.raises(UserError, match="The timing profile a extends itself"):
        load_timing("a")


def test_a_distribution_gives_the_shape_and_the_time_stays_the_mean(home: Path) -> None:
    own_profile(home, "office", OWN)
    factors = load_timing("office").sign["normal"].factors(np.linspace(0, 1, 100_001))
    assert factors.mean() == pytest.approx(1, rel=1e-3)
    assert (factors.min(), factors.max()) == pytest.approx((5 / 13, 31 / 13)), "13 is the mean of the quantiles"
    assert load_timing("luna-sa-1700").unwrap.factors(np.array([0.1, 0.9])).tolist() == [1, 1]


@pytest.mark.parametrize(
    "rows", ["{ part = 0.1, ms = 1 }, { part = 1, ms = 2 }", "{ part = 0, ms = 3 }, { part = 1, ms = 2 }"]
)
def test_invalid_distribution_is_one_sentence(home: Path, rows: str) -> None:
    start, end = OWN.index("distribution"), OWN.rindex("]")
    own_profile(home, "office", OWN[:start] + f"distribution = [{rows}" + OWN[end:])
    with pytest.raises(UserError, match="begin with part 0, end with part 1"):
        load_timing("office")
