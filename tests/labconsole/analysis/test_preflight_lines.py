"""The preflight of a run as one line with its checks, in a run and over the runs of a comparison."""

from __future__ import annotations

from labconsole.analysis.verdict_lines import VerdictCell, VerdictLine, preflight_folded, preflight_lines
from labconsole.model.metrics import Verdict, VerdictKind

PREFLIGHT = VerdictKind.PREFLIGHT


def check(name: str, result: str) -> Verdict:
    return Verdict(f"preflight: {name}", result, f"{name} was checked.", kind=PREFLIGHT)


def test_passed_checks_are_folded_under_a_line_that_counts_them() -> None:
    others = (Verdict("all messages arrived", "pass", "Every message arrived."),)
    lines = preflight_lines([check("TCP", "pass"), check("TLS", "not applicable"), *others, check("link", "pass")])
    assert lines.summary is not None
    assert (lines.summary.result, lines.summary.reason) == ("pass", "3 checks: 2 passed, 1 not applicable.")
    assert ([one.name for one in lines.folded], lines.open) == (
        ["preflight: TCP", "preflight: TLS", "preflight: link"],
        (),
    )
    assert lines.others == others


def test_checks_that_need_attention_stay_open_and_the_worst_is_that_of_the_line() -> None:
    lines = preflight_lines([check("TCP", "pass"), check("revocation", "warning"), check("link", "fail")])
    assert lines.summary is not None
    assert (lines.summary.result, lines.summary.reason) == ("fail", "3 checks: 1 failed, 1 with a warning, 1 passed.")
    assert [one.result for one in lines.open] == ["warning", "fail"]


def test_a_run_without_preflight_has_no_line() -> None:
    assert preflight_lines([Verdict("accepted", "pass", "")]).summary is None


def test_checks_that_passed_in_all_runs_are_one_line_of_a_comparison() -> None:
    good, none = VerdictCell("pass", "5 of 5 pass", 5), VerdictCell("not applicable", "not applicable", 1)
    bad = VerdictCell("warning", "warning", 1, "Not known.")
    other = VerdictLine("accepted", (good, good), VerdictKind.INTEGRITY)
    lines = (
        VerdictLine("preflight: TLS", (none, good), PREFLIGHT),
        VerdictLine("preflight: TCP", (good, good), PREFLIGHT),
        VerdictLine("preflight: revocation", (none, bad), PREFLIGHT),
        other,
    )
    folded = preflight_folded(lines)
    assert [line.name for line in folded] == ["preflight: 2 checks", "preflight: revocation", "accepted"]
    assert folded[0].cells == (good, good)
    assert preflight_folded((other,)) == (other,)
