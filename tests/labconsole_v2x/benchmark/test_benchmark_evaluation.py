"""Rates, times and ratios of the benchmark by their definitions, on executions whose times are known."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from labconsole_v2x.benchmark.benchmark_evaluation import METRICS, curves, distributions, evaluate
from labconsole_v2x.benchmark.benchmark_series import EXECUTIONS, How, Measured
from tests.labconsole_v2x.live.synthetic_packets import MS, Tables

US = 1000
Execution = tuple[Measured, How, int, int, int]
"""Operation, cores, round, operations, and the time of one in us."""


def samples(*roles: Sequence[Execution]) -> Tables:
    """The executions of each role, one after the other."""
    tables = Tables()
    for number, rows in enumerate(roles):
        written = [
            (operation, how, round_number, count, place * MS, count * each_us * US)
            for place, (operation, how, round_number, count, each_us) in enumerate(rows)
        ]
        tables.add(EXECUTIONS, f"benchmark-{number}", written)
    return tables


def one(operation: Measured, round_number: int, each_us: int, count: int = 100, how: How = How.ONE) -> Execution:
    return (operation, how, round_number, count, each_us)


def figures(tables: Tables) -> dict[str, float]:
    """Metrics by name, with the value of a label behind it."""
    return {" ".join((metric.name, *metric.labels.values())): metric.value for metric in evaluate(tables).metrics}


def test_rate_and_time_are_medians_of_all_executions_and_the_fastest_is_kept() -> None:
    """Each execution counts once, whatever its length."""
    rows = [one(Measured.VERIFY, number // 2, each, 10 + number) for number, each in enumerate((100, 90, 80, 500, 95))]
    found = figures(samples(rows))
    assert found["verify_time"] == pytest.approx(0.095) and found["verify_fastest"] == pytest.approx(0.080)
    assert found["verify_rate"] == pytest.approx(1e6 / 95)
    (metric,) = (each for each in evaluate(samples(rows)).metrics if each.name == "verify_fastest")
    assert metric.samples == 5


def test_parse_and_hash_is_in_microseconds_and_the_rest_in_milliseconds() -> None:
    found = figures(samples([one(Measured.PARSE_HASH, 0, 5), one(Measured.RAW_SIGN, 0, 30)]))
    assert found["parse_hash_time"] == found["parse_hash_fastest"] == 5
    assert found["raw_sign_time"] == pytest.approx(0.030)


@pytest.mark.parametrize(
    ("name", "ours", "theirs", "how"),
    [
        ("verify_ratio_to_openssl", Measured.VERIFY, Measured.OPENSSL_VERIFY, How.ONE),
        ("verify_ratio_two_cores", Measured.VERIFY, Measured.OPENSSL_VERIFY, How.PROCESSES),
        ("sign_ratio_to_openssl", Measured.SIGN, Measured.OPENSSL_SIGN, How.ONE),
    ],
)
def test_ratio_is_the_median_of_interleaved_rounds(name: str, ours: Measured, theirs: Measured, how: How) -> None:
    """A round in which the computer was slow for both counts as any other; the ratio of all medians would be 0.625."""
    times = [(100, 90), (200, 180), (100, 50), (1000, 900), (100, 80)]
    rows = []
    for number, (our_us, their_us) in enumerate(times):
        rows += [one(theirs, number, their_us, how=how), one(ours, number, our_us, how=how)]
    found = figures(samples(rows))
    assert found[name] == pytest.approx(0.9)
    assert not {"verify_ratio_to_openssl", "verify_ratio_two_cores", "sign_ratio_to_openssl"} - {name} & found.keys()


def test_ratio_leaves_out_rounds_that_lack_one_of_the_two() -> None:
    """A run that was cancelled in its third round."""
    rows = [one(Measured.OPENSSL_VERIFY, number, 90) for number in range(3)]
    rows += [one(Measured.VERIFY, 0, 100), one(Measured.VERIFY, 1, 180)]
    tables = samples(rows)
    assert figures(tables)["verify_ratio_to_openssl"] == pytest.approx((0.9 + 0.5) / 2)
    (ratio,) = (metric for metric in evaluate(tables).metrics if metric.name == "verify_ratio_to_openssl")
    assert ratio.samples == 2


def test_parse_and_hash_is_a_share_of_one_raw_verification() -> None:
    rows = [one(Measured.RAW_VERIFY, number, 80) for number in range(3)]
    rows += [one(Measured.PARSE_HASH, number, each) for number, each in enumerate((4, 8, 5))]
    assert figures(samples(rows))["parse_hash_share"] == pytest.approx(5 / 80)


def test_processes_add_up_in_each_round() -> None:
    """Two executions of a process in a round are one after the other, those of two processes are at the same time."""
    rows = [one(Measured.VERIFY, number, 100, how=How.PROCESSES) for number in (0, 0, 1, 1)]
    slow = [one(Measured.VERIFY, number, each, how=How.PROCESSES) for number, each in ((0, 200), (1, 400))]
    found = figures(samples(rows, slow))
    assert found["verify_rate processes"] == pytest.approx((15_000 + 12_500) / 2)
    assert "verify_rate" not in found, "on one core nothing was measured"


def test_threads_and_processes_are_apart() -> None:
    rows = [
        one(Measured.SIGN, 0, 50, how=How.THREADS),
        one(Measured.SIGN, 0, 40, how=How.PROCESSES),
        one(Measured.SIGN, 0, 100),
        one(Measured.OPENSSL_SIGN, 0, 20, how=How.PROCESSES),
    ]
    found = figures(samples(rows))
    assert {name: round(value) for name, value in found.items() if "rate" in name} == {
        "sign_rate": 10_000,
        "sign_rate threads": 20_000,
        "sign_rate processes": 25_000,
        "openssl_sign_rate processes": 50_000,
    }


def test_figures_have_unit_direction_and_order_of_their_kinds() -> None:
    rows = [one(operation, 0, 100, how=how) for operation in Measured for how in How]
    metrics = evaluate(samples(rows)).metrics
    kinds = {kind.name: (kind.unit, kind.direction) for kind in METRICS}
    names = list(kinds)
    assert {metric.name for metric in metrics} == set(names)
    assert all((metric.unit, metric.direction) == kinds[metric.name] for metric in metrics)
    assert [names.index(metric.name) for metric in metrics] == sorted(names.index(metric.name) for metric in metrics)


def test_nothing_measured_gives_no_figures() -> None:
    assert evaluate(Tables()).metrics == () == evaluate(samples([])).metrics
    assert distributions(Tables()) == () and curves(Tables(), 0) == ()


def test_each_execution_is_a_point() -> None:
    rows = [one(Measured.VERIFY, 0, 100), one(Measured.SIGN, 0, 30), one(Measured.VERIFY, 1, 120)]
    rows.append(one(Measured.VERIFY, 1, 5, how=How.PROCESSES))
    drawn = {curve.title: curve for curve in curves(samples(rows), -1_000_000_000)}
    assert set(drawn) == {"Sign a packet", "Verify a packet"}
    verify = drawn["Verify a packet"]
    assert verify.t_s.tolist() == [1.0, 1.002] and verify.values.tolist() == [100, 120]
    shown = {found.title: found.values.tolist() for found in distributions(samples(rows))}
    assert shown == {"Sign a packet": [30], "Verify a packet": [100, 120]}
