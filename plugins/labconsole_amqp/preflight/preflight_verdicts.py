"""The verdicts of a run's preflight: one for each check, over all ends that have done it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from labconsole.clock_comparison import host_uncertainties_ns
from labconsole.model.metrics import Verdict, VerdictKind
from labconsole.model.series import Event
from labconsole_amqp.preflight.checks import Check, CheckName, CheckResult, clocks_of_hosts_check

_WORST_FIRST = (
    CheckResult.FAILED,
    CheckResult.WARNING,
    CheckResult.UNKNOWN,
    CheckResult.PASSED,
    CheckResult.NOT_APPLICABLE,
)

_RUN = "worker"
"""The source of the run's own events."""


def preflight_verdicts(events: Sequence[Event]) -> Iterator[Verdict]:
    """Yield a verdict for each check that an event of the run carries, in the order of `CheckName`."""
    by_name: dict[CheckName, dict[str, Check]] = {}
    for event in events:
        for data in event.data.get("checks", ()):
            check = Check.from_json(data)
            by_name.setdefault(check.name, {})[event.source] = check
    if hosts := host_uncertainties_ns(events):
        by_name.setdefault(CheckName.CLOCK_OFFSET, {})[_RUN] = clocks_of_hosts_check(hosts)
    for name in CheckName:
        if name in by_name:
            yield _verdict(name, by_name[name])


def summary(checks: Sequence[Check]) -> str:
    """What the checks of all ends found, in one sentence."""
    bad = [check for check in checks if check.result in (CheckResult.WARNING, CheckResult.UNKNOWN)]
    if not bad:
        done = {check.name for check in checks if check.result is not CheckResult.NOT_APPLICABLE}
        return f"Preflight passed: {', '.join(name for name in CheckName if name in done)}."
    return f"Preflight passed with warnings: {' '.join(dict.fromkeys(check.sentence for check in bad))}"


def _verdict(name: CheckName, checks: Mapping[str, Check]) -> Verdict:
    """The worst result of all roles, with its sentence: of one role of each end and queue, where they differ."""
    worst = min((check.result for check in checks.values()), key=_WORST_FIRST.index)
    found: dict[tuple[str, object], str] = {}
    for role, check in sorted(checks.items()):
        if check.result is worst:
            found.setdefault((role.partition("-")[0], check.evidence.get("address")), check.sentence)
    sentences = [f"{end.capitalize()}: {sentence}" for (end, _), sentence in found.items()]
    reason = " ".join(sentences if len(set(found.values())) > 1 else dict.fromkeys(found.values()))
    evidence = {role: dict(check.evidence) for role, check in sorted(checks.items())}
    return Verdict(f"preflight: {name}", worst.value, reason, evidence, VerdictKind.PREFLIGHT)
