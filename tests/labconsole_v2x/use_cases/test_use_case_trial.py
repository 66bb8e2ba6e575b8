"""The trial of use cases with its real role: verdicts by code, evidence as a file, and what is left untested."""

from __future__ import annotations

import os
import signal
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from labconsole.engine.launcher import LocalLauncher
from labconsole.engine.spool import AttachmentBlock, SampleBlock, SpoolReader
from labconsole.errors import UserError
from labconsole.security.secrets import Secret
from labconsole.security.token.lab_token import make_softhsm_token
from labconsole.security.token.named_tokens import save_configuration
from labconsole.store.records import RunStatus
from labconsole_v2x.security.backends import Backend
from labconsole_v2x.use_cases.catalogue import CODES, USE_CASES
from labconsole_v2x.use_cases.evidence import EVIDENCE, MOST_LINE_OCTETS, grouped, of_table, read_lines
from labconsole_v2x.use_cases.evidence_inspection import has_evidence, inspect_evidence
from labconsole_v2x.use_cases.judging import NOT_TESTED, PASSED, judge
from labconsole_v2x.use_cases.use_case_parameters import UseCaseParameters
from labconsole_v2x.use_cases.use_case_role import FILE
from labconsole_v2x.use_cases.use_case_trial import UseCaseTrial
from tests.helpers import trial_lab
from tests.helpers.practice import Bench
from tests.helpers.role_threads import RoleThreads

TRIAL = UseCaseTrial()
ROLE = "use-cases"
FEW = "A-SIG-06, F-SIG-01, FUN-07, f-cer-01"
COUNTED = sum(case.counted for case in USE_CASES.values())
PIN = Secret("1234-user")


@dataclass(frozen=True)
class Outcome(trial_lab.Outcome[UseCaseParameters]):
    """The result of a run of use cases."""

    lines: tuple[bytes, ...] = ()
    """Of the file with the evidence."""

    @property
    def reasons(self) -> dict[str, str]:
        """Reasons by code."""
        return {verdict.name: verdict.reason for verdict in self.evaluation.verdicts}

    @property
    def tested(self) -> list[str]:
        """The codes with stored evidence."""
        return list(of_table(self.samples.table(EVIDENCE.name, ROLE)))


PROCESSES = LocalLauncher()
"""Starts the role as a process, where it is killed or loads a token."""


class UseCaseLab(trial_lab.TrialLab[UseCaseParameters, Outcome]):
    """One run, its role a thread of this process by default; `during` is called on another thread at once."""

    trial = TRIAL
    outcome = Outcome
    roles = RoleThreads

    def run(self, **settings: Any) -> Outcome:
        """Run, by default with a rate that a busy machine keeps up with."""
        outcome = super().run(**{"rate": 100.0, **settings})
        blocks = [one for one in self.blocks() if isinstance(one, AttachmentBlock) and one.name == FILE]
        return replace(outcome, lines=tuple(b"".join(one.content for one in blocks).splitlines(keepends=True)))

    def blocks(self) -> list[Any]:
        """What the role has written until now."""
        path, found = self._folder / f"{ROLE}.spool", []
        if path.exists():
            reader = SpoolReader(path)
            while blocks := reader.read_new():
                found += blocks
        return found

    def until_stored(self, count: int) -> None:
        """Wait until the evidence of so many cases was written, or the run is over."""

        def stored() -> int:
            tables = [one.columns for one in self.blocks() if isinstance(one, SampleBlock)]
            return len({code for table in tables for code in table["case"].tolist()})

        while stored() < count and not self._over.wait(0.02):
            pass


def run(folder: Path, **settings: Any) -> Outcome:
    return UseCaseLab(folder / "run").run(**settings)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """A run of four chosen cases."""
    return run(tmp_path_factory.mktemp("few"), cases=FEW)


def test_chosen_cases_are_tested_and_the_others_counted_as_not_tested(few: Outcome) -> None:
    assert few.failure is None
    assert few.parameters.cases == "A-SIG-06, F-SIG-01, FUN-07, F-CER-01"
    assert few.parameters.selected == tuple(few.tested) == ("FUN-07", "F-SIG-01", "F-CER-01", "A-SIG-06")
    assert few.figures == {"passed": 3, "failed": 0, "not_tested": COUNTED - 3, "functions_passed": 1}
    assert {metric.name: metric.samples for metric in few.evaluation.metrics} == {
        **dict.fromkeys(("passed", "failed", "not_tested"), 36),
        "functions_passed": 10,
    }
    assert list(few.verdicts) == list(CODES), "in the order of the list"
    assert Counter(few.verdicts.values()) == {PASSED: 4, NOT_TESTED: len(CODES) - 4}
    assert few.reasons["F-SIG-01"] == f"{USE_CASES['F-SIG-01'].title}. CAM: 20 sent, 20 accepted."
    assert few.reasons["F-SIG-02"] == "Signature of DENM messages. Not among the chosen cases."


def test_verdicts_on_the_file_are_those_of_the_run(few: Outcome) -> None:
    judgements = {code: judge(evidence) for code, evidence in grouped(read_lines(few.lines)).items()}
    assert list(judgements) == few.tested
    for code, judgement in judgements.items():
        assert few.verdicts[code] == judgement.result
        assert few.reasons[code] == f"{USE_CASES[code].title}. {judgement.reason}"
    assert grouped(read_lines(few.lines))["F-SIG-01"].records == (
        of_table(few.samples.table(EVIDENCE.name, ROLE))["F-SIG-01"].records
    )


def test_inspection_of_the_file_gives_the_same_verdicts(few: Outcome, tmp_path: Path) -> None:
    path = tmp_path / "evidence.jsonl"
    path.write_bytes(b"".join(few.lines))
    assert has_evidence(path)
    result = inspect_evidence(path)
    assert result.passed
    assert list(result.data) == few.tested
    for code, verdict in result.data.items():
        assert verdict["result"] == "passed"
        assert few.reasons[code] == f"{USE_CASES[code].title}. {verdict['reason']}"
    path.write_bytes(b"".join(few.lines).replace(b'"result":"accepted"', b'"result":"duplicate"', 1))
    altered = inspect_evidence(path)
    assert not altered.passed
    assert [code for code, verdict in altered.data.items() if verdict["result"] == "failed"] == ["F-SIG-01"]
    path.write_bytes(b"".join(few.lines[:7]) + few.lines[7][:-9])
    with pytest.raises(UserError, match=r"^evidence\.jsonl is broken evidence \(line 8: "):
        inspect_evidence(path)
    spaces = b" " * MOST_LINE_OCTETS
    path.write_bytes(few.lines[0] + spaces + few.lines[1])
    with pytest.raises(UserError, match=r"^evidence\.jsonl is broken evidence \(line 2: "):
        inspect_evidence(path)


def test_live_results_are_those_of_evaluate(few: Outcome) -> None:
    assert few.frame.by_role.state("results", ROLE) == dict.fromkeys(few.tested, "passed")
    assert few.frame.channels["tested"].count == few.frame.total == 4


@pytest.mark.parametrize(
    ("cases", "reason"),
    [
        ("F-SIG-01, F-SIG-99, x", "F-SIG-99, X is not a use case: write codes such as F-SIG-01, or all"),
        (" , ", "write codes such as F-SIG-01 with commas between them, or all"),
        ("", "at least 1 character"),
        ("all, F-SIG-01", "ALL is not a use case"),
    ],
)
def test_unknown_code_is_refused_by_its_field(cases: str, reason: str) -> None:
    with pytest.raises(ValidationError) as raised:
        UseCaseParameters(cases=cases)
    (error,) = raised.value.errors()
    assert error["loc"] == ("cases",) and reason in error["msg"]


def test_cases_are_listed_once_and_all_is_all() -> None:
    assert UseCaseParameters(cases=" f-sig-02,F-SIG-01,f-sig-01 ").selected == ("F-SIG-01", "F-SIG-02")
    assert UseCaseParameters(cases="ALL") == UseCaseParameters()
    assert UseCaseParameters().selected == CODES


@pytest.fixture
def token(tmp_path: Path, own_home: Path) -> str:
    """The name of a token with SoftHSM."""
    save_configuration("office", make_softhsm_token(tmp_path / "softhsm", "office", PIN, Secret("5678-officer")))
    return "office"


def test_only_a_token_that_is_used_needs_its_pin(token: str) -> None:
    assert TRIAL.secrets(UseCaseParameters(token=token)) == ()
    assert [one.key for one in TRIAL.secrets(UseCaseParameters(backend=Backend.TOKEN, token=token))] == ["pin office"]
    assert TRIAL.secrets(UseCaseParameters(backend=Backend.TOKEN)) == (), "that of the built-in token is known"


def test_without_its_token_no_case_is_tested_and_each_says_why(tmp_path: Path) -> None:
    outcome = run(tmp_path, backend="token", token="office", cases=FEW)
    assert outcome.failure is None
    assert outcome.figures == {"passed": 0, "failed": 0, "not_tested": COUNTED, "functions_passed": 0}
    assert set(outcome.verdicts.values()) == {NOT_TESTED}
    for code in outcome.parameters.selected:
        assert outcome.reasons[code].endswith(". No token is called office; there are: lab.")
    judged = [judge(evidence) for evidence in grouped(read_lines(outcome.lines)).values()]
    assert [(one.code, one.result) for one in judged] == [(code, NOT_TESTED) for code in outcome.parameters.selected]


def run_with_token(folder: Path, token: str, **settings: Any) -> Outcome:
    """A run with keys in a token, whose PIN is in no file."""
    (request,) = TRIAL.secrets(UseCaseParameters(backend=Backend.TOKEN, token=token))
    lab = UseCaseLab(folder / "run", launcher=PROCESSES, secrets={request.key: PIN})
    outcome = lab.run(backend="token", token=token, **settings)
    assert outcome.failure is None
    assert PIN.reveal() not in b"".join(outcome.lines).decode()
    return outcome


def test_cases_of_each_kind_pass_with_keys_in_a_token(tmp_path: Path, token: str) -> None:
    """A fault that only another case with a token shows is found by the next test, at night."""
    chosen = [code for code in CODES if code.startswith("FUN")]
    chosen += ["F-SIG-01", "F-SIG-07", "F-PSN-01", "F-ENC-02", "F-IVS-01", "A-SIG-02", "A-CER-01"]
    outcome = run_with_token(tmp_path, token, cases=", ".join(chosen))
    assert {code: outcome.reasons[code] for code in chosen if outcome.verdicts[code] != PASSED} == {}
    assert outcome.figures == {"passed": 7, "failed": 0, "not_tested": 29, "functions_passed": 10}


@pytest.mark.nightly
def test_all_cases_pass_with_keys_in_a_token(tmp_path: Path, token: str) -> None:
    outcome = run_with_token(tmp_path, token)
    assert outcome.figures == {"passed": 36, "failed": 0, "not_tested": 0, "functions_passed": 10}


def test_wrong_pin_of_a_token_is_the_reason_of_each_case(tmp_path: Path, token: str) -> None:
    (request,) = TRIAL.secrets(UseCaseParameters(backend=Backend.TOKEN, token=token))
    lab = UseCaseLab(tmp_path / "run", launcher=PROCESSES, secrets={request.key: Secret("wrong-pin")})
    outcome = lab.run(backend="token", token=token, cases="F-SIG-01, FUN-07")
    assert outcome.failure is None
    assert set(outcome.verdicts.values()) == {NOT_TESTED}
    assert "PIN" in outcome.reasons["F-SIG-01"] and "PIN" in outcome.reasons["FUN-07"]
    assert "wrong-pin" not in outcome.reasons["F-SIG-01"]


def test_killed_role_leaves_the_evidence_of_cases_before(tmp_path: Path) -> None:
    def kill(lab: UseCaseLab) -> None:
        lab.until_stored(2)
        os.kill(lab.pid(ROLE), signal.SIGKILL)

    outcome = UseCaseLab(tmp_path / "run", launcher=PROCESSES, during=kill).run(
        cases="F-SIG-01, F-SIG-02, F-SIG-03, A-SIG-04, A-SIG-06"
    )
    assert outcome.failure is not None and ROLE in outcome.failure
    assert outcome.tested == ["F-SIG-01", "F-SIG-02"]
    assert outcome.verdicts["F-SIG-01"] == outcome.verdicts["F-SIG-02"] == PASSED
    for code in ("F-SIG-03", "A-SIG-04", "A-SIG-06"):
        assert outcome.verdicts[code] == NOT_TESTED
        assert outcome.reasons[code].endswith("The run ended before it.")
    assert outcome.figures["passed"] == 2 and outcome.figures["failed"] == 0


def test_cancelled_run_ends_its_case_and_leaves_the_rest_untested(tmp_path: Path) -> None:
    def cancel(lab: UseCaseLab) -> None:
        lab.until_stored(2)
        lab.cancel()

    outcome = UseCaseLab(tmp_path / "run", during=cancel).run(cases="F-SIG-01, F-SIG-02, F-SIG-03, A-SIG-04, A-SIG-06")
    assert outcome.tested[:2] == ["F-SIG-01", "F-SIG-02"] and "A-SIG-06" not in outcome.tested
    for code in ("F-SIG-01", "F-SIG-02", "F-SIG-03", "A-SIG-04", "A-SIG-06"):
        assert outcome.verdicts[code] == (PASSED if code in outcome.tested else NOT_TESTED)
    judged = {code: judge(evidence).result for code, evidence in grouped(read_lines(outcome.lines)).items()}
    assert judged == dict.fromkeys(outcome.tested, PASSED)


def test_token_against_software_is_a_fair_pair() -> None:
    software, token = UseCaseParameters(), UseCaseParameters(backend=Backend.TOKEN, token="office")
    assert TRIAL.contrast(software, token) == "Token against software"
    assert TRIAL.contrast(token, software) == ""
    assert TRIAL.contrast(software, UseCaseParameters(backend=Backend.TOKEN, cases="F-SIG-01")) == ""


def test_warnings_say_what_the_run_does_not_show() -> None:
    (air,) = TRIAL.warnings(UseCaseParameters())
    assert "no frame is on the air" in air
    _, token, cases = TRIAL.warnings(UseCaseParameters(backend=Backend.TOKEN, cases="F-SIG-01"))
    assert token.startswith("The keys of stations are in the token")
    assert cases == f"1 of {len(CODES)} cases were chosen: the others count as not tested."


def test_run_with_an_unknown_token_is_queued_and_stored(tmp_path: Path) -> None:
    """As a user has it: the run finishes, and each verdict says which token is missing."""
    bench = Bench(tmp_path)
    try:
        (found,) = bench.run({"backend": "token", "token": "office", "cases": "F-SIG-01"}, kind=TRIAL.kind)
    finally:
        bench.close()
    assert found.row.status is RunStatus.FINISHED
    reasons = {verdict.name: verdict.reason for verdict in found.verdicts}
    assert reasons["F-SIG-01"].endswith("No token is called office; there are: lab.")
    assert {verdict.result for verdict in found.verdicts} == {NOT_TESTED}
