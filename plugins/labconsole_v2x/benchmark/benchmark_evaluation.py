"""The figures of a benchmark run, from its recorded executions alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import Curve, Direction, Distribution, Evaluation, Metric, MetricKind, Samples
from labconsole_v2x.benchmark.benchmark_series import EXECUTIONS, OF_PACKETS, How, Measured

_WHAT = {
    Measured.RAW_SIGN: ("raw_sign", "Raw signature", "a digest signed, without a packet"),
    Measured.RAW_VERIFY: ("raw_verify", "Raw verification", "the signature of a digest verified, without a packet"),
    Measured.SIGN: ("sign", "Sign a packet", "encapsulation: a CAM's payload signed and the secured packet built"),
    Measured.VERIFY: (
        "verify",
        "Verify a packet",
        "decapsulation: headers read, all checks of the receiver done, one verification, ticket and issuer known",
    ),
    Measured.VERIFY_DECODED: (
        "verify_decoded",
        "Verify and decode",
        "as `verify`, with the CAM decoded and its SSP checked",
    ),
    Measured.VERIFY_COLD: (
        "verify_cold",
        "Verify, nothing known",
        "ticket and AA unknown: both certificates validated up to the root, their keys loaded, three verifications",
    ),
    Measured.PARSE_HASH: (
        "parse_hash",
        "Parse and hash",
        "headers and secured packet sliced, and hashed; the ticket's hash is known; no CAM",
    ),
    Measured.OPENSSL_SIGN: ("openssl_sign", "openssl speed, sign", "the program `openssl speed`, with its own library"),
    Measured.OPENSSL_VERIFY: (
        "openssl_verify",
        "openssl speed, verify",
        "the program `openssl speed`, with its own library",
    ),
}
_HOW = {How.THREADS: "threads", How.PROCESSES: "processes"}


def _ratio(name: str, title: str, description: str) -> MetricKind:
    return MetricKind(name, title, "", Direction.HIGHER, f"{description} Median of the rounds' ratios.")


def _kinds() -> Iterator[MetricKind]:
    for name, title, what in _WHAT.values():
        yield MetricKind(
            f"{name}_rate",
            f"{title}, rate",
            "msg/s",
            Direction.HIGHER,
            f"Operations a second on one core, the median of all executions: {what}. With a label: all threads or "
            "processes together, the median of the rounds.",
        )
        unit = "us" if name == "parse_hash" else "ms"
        yield MetricKind(
            f"{name}_time", f"{title}, time", unit, Direction.LOWER, f"Of one operation, the median of all: {what}."
        )
        yield MetricKind(
            f"{name}_fastest",
            f"{title}, fastest",
            unit,
            Direction.LOWER,
            "Of one operation in the fastest of all executions (10 at least, as in the source; `openssl speed`: one a "
            f"round): {what}.",
        )


METRICS: tuple[MetricKind, ...] = (
    _ratio("verify_ratio_to_openssl", "Verification against openssl", "Rate of `verify` over that of `openssl speed`."),
    _ratio(
        "verify_ratio_two_cores",
        "The same on several cores",
        "Rate of `verify` in processes over that of `openssl speed -multi`.",
    ),
    _ratio("sign_ratio_to_openssl", "Signing against openssl", "Rate of `sign` over that of `openssl speed`."),
    MetricKind(
        "parse_hash_share",
        "Parse and hash, share",
        "",
        Direction.LOWER,
        "Time of `parse_hash` over that of one raw verification. Median of the rounds' ratios.",
    ),
    *_kinds(),
)
_BY_NAME = {kind.name: kind for kind in METRICS}
Table = dict[str, NDArray[np.int64]]


def evaluate(samples: Samples) -> Evaluation:
    """Rates, times and ratios; none for what was not measured."""
    roles = {role: samples.table(EXECUTIONS.name, role) for role in samples.roles(EXECUTIONS.name)}
    metrics = [*_single(roles), *_several(roles), *_ratios(roles)]
    order = list(_BY_NAME)
    return Evaluation(tuple(sorted(metrics, key=lambda one: order.index(one.name))))


def distributions(samples: Samples) -> tuple[Distribution, ...]:
    """The time of one operation in each execution, us."""
    roles = {role: samples.table(EXECUTIONS.name, role) for role in samples.roles(EXECUTIONS.name)}
    found = ((_WHAT[operation][1], _times_us(roles, operation)) for operation in OF_PACKETS)
    return tuple(Distribution(title, "us", times) for title, times in found if len(times))


def curves(samples: Samples, begin_ns: int) -> tuple[Curve, ...]:
    """The same over time, a line for each operation."""
    lines = []
    for operation in OF_PACKETS:
        for role in samples.roles(EXECUTIONS.name):
            table = _chosen(samples.table(EXECUTIONS.name, role), operation, How.ONE)
            if len(table["count"]):
                t_s = (table["started_ns"] - begin_ns) / 1e9
                lines.append(Curve(_WHAT[operation][1], "Time of one operation", "us", t_s, _us(table)))
    return tuple(lines)


def _chosen(table: Mapping[str, NDArray[np.int64]], operation: Measured, how: How) -> Table:
    chosen = (table["operation"] == operation) & (table["how"] == how)
    return {name: column[chosen].astype(np.int64) for name, column in table.items()}


def _us(table: Table) -> NDArray[np.float64]:
    return np.asarray(table["took_ns"] / table["count"] / 1e3)


def _times_us(roles: Mapping[str, Table], operation: Measured) -> NDArray[np.float64]:
    found = [_us(_chosen(table, operation, How.ONE)) for table in roles.values()]
    return np.concatenate(found) if found else np.empty(0)


def _metric(name: str, value: float, samples: int, **labels: str) -> Metric:
    kind = _BY_NAME[name]
    return Metric(name, float(value), kind.unit, kind.direction, samples, labels)


def _single(roles: Mapping[str, Table]) -> Iterator[Metric]:
    for operation, (name, _, _) in _WHAT.items():
        times_us = _times_us(roles, operation)
        if len(times_us):
            scale = 1.0 if _BY_NAME[f"{name}_time"].unit == "us" else 1e-3
            yield _metric(f"{name}_rate", 1e6 / np.median(times_us), len(times_us))
            yield _metric(f"{name}_time", np.median(times_us) * scale, len(times_us))
            yield _metric(f"{name}_fastest", times_us.min() * scale, len(times_us))


def _rates_by_round(roles: Mapping[str, Table], operation: Measured, how: How) -> dict[int, float]:
    """Operations a second of all processes together in each round."""
    rates: dict[int, float] = {}
    for table in roles.values():
        chosen = _chosen(table, operation, how)
        for number in np.unique(chosen["round"]).tolist():
            of_round = chosen["round"] == number
            rate = chosen["count"][of_round].sum() / chosen["took_ns"][of_round].sum() * 1e9
            rates[number] = rates.get(number, 0.0) + float(rate)
    return rates


def _several(roles: Mapping[str, Table]) -> Iterator[Metric]:
    for operation, (name, _, _) in _WHAT.items():
        for how, label in _HOW.items():
            rates = list(_rates_by_round(roles, operation, how).values())
            if rates:
                yield _metric(f"{name}_rate", np.median(rates), len(rates), cores=label)


def _ratios(roles: Mapping[str, Table]) -> Iterator[Metric]:
    for name, operation, reference, how in (
        ("verify_ratio_to_openssl", Measured.VERIFY, Measured.OPENSSL_VERIFY, How.ONE),
        ("verify_ratio_two_cores", Measured.VERIFY, Measured.OPENSSL_VERIFY, How.PROCESSES),
        ("sign_ratio_to_openssl", Measured.SIGN, Measured.OPENSSL_SIGN, How.ONE),
        ("parse_hash_share", Measured.RAW_VERIFY, Measured.PARSE_HASH, How.ONE),
    ):
        ours, theirs = (_rates_by_round(roles, one, how) for one in (operation, reference))
        ratios = [ours[number] / theirs[number] for number in sorted(ours.keys() & theirs.keys())]
        if ratios:
            yield _metric(name, np.median(ratios), len(ratios))
