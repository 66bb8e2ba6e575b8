"""What a reader of a run's figures is told."""

from __future__ import annotations

import pytest

from labconsole.analysis.caveats import caveats, link_bound, link_share, too_few
from labconsole.analysis.comparison import compare, group_repeats
from labconsole.model.trial import LINK_RATE, LINK_USE
from labconsole.store.records import RunStatus
from tests.helpers.post_trial import PostTrial, run


@pytest.mark.parametrize(
    ("samples", "quantile", "expected"),
    [
        (5_000, 0.99, False),
        (4_999, 0.99, True),
        (50_000, 0.999, False),
        (49_999, 0.999, True),
        (100, 0.9, False),
        (20, 0.5, False),
        (0, 0.5, True),
        (99, 0.9, True),
        (4_999, 0.01, True),
    ],
)
def test_a_percentile_needs_samples_beyond_it_and_more_of_them_from_p99_on(
    samples: int, quantile: float, expected: bool
) -> None:
    assert bool(too_few(samples, quantile)) is expected


def test_a_percentile_of_too_few_samples_says_how_many_it_needs() -> None:
    assert too_few(250, 0.99) == "p99 needs 5,000 samples (there are 250)"
    assert too_few(250, 0.999) == "p99.9 needs 50,000 samples (there are 250)"


def test_a_run_that_fills_its_link_is_link_bound_and_the_link_is_named() -> None:
    parameters = {"letters": 10, LINK_RATE: 2.0}
    bound = run(1, "open", {LINK_USE: 92.4}, parameters=parameters)
    assert link_bound(bound) and link_share([bound]) == "92 % of 2 Mbit/s"
    assert caveats(bound) == ("Link-bound: 92 % of 2 Mbit/s, so the figures tell of the link.",)
    assert link_share([bound, run(2, "open", {LINK_USE: 80.4}, parameters=parameters)]) == "86 % of 2 Mbit/s"
    assert link_share([run(1, "open", {LINK_USE: 92.0})]) == "92 % of its link"
    assert not link_bound(run(1, "open", {LINK_USE: 79.9})) and not link_bound(run(1, "open", {}))


def test_a_run_that_took_more_than_its_link_had_another_link() -> None:
    impossible = run(1, "open", {LINK_USE: 1497.0}, parameters={"letters": 10, LINK_RATE: 20.0})
    assert not link_bound(impossible)
    told = "took 1,497 % of 20 Mbit/s: the link has another rate than was stated."
    assert caveats(impossible) == (f"It {told}",)
    assert f"open {told}" in compare(group_repeats([impossible]), PostTrial()).notes


def test_warnings_of_the_trial_come_first_and_the_end_of_the_run_last() -> None:
    found = caveats(run(7, "open", {}, warnings=("Closed loop.",), status=RunStatus.INTERRUPTED))
    assert found == ("Closed loop.", "Run 7 is interrupted: its figures cover what was sampled until then.")
    assert caveats(run(7, "open", {})) == ()
