"""Evidence of use cases judged again, from a file: a verdict for each case that was tested."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from labconsole.errors import UserError
from labconsole.model.operation import Result, TextTable, Tone, TonedText
from labconsole.safe_text import shown
from labconsole_v2x.use_cases.catalogue import USE_CASES
from labconsole_v2x.use_cases.evidence import MOST_LINE_OCTETS, grouped, is_evidence, read_lines
from labconsole_v2x.use_cases.judging import FAILED, NOT_TESTED, PASSED, RESULT_WORDS, judge

_TONES = {PASSED: Tone.GOOD, FAILED: Tone.BAD, NOT_TESTED: Tone.MUTED}
_HEAD = 64


def has_evidence(path: Path) -> bool:
    """Whether a file begins as evidence of use cases does; False where it cannot be read."""
    try:
        with path.open("rb") as file:
            return is_evidence(file.read(_HEAD))
    except OSError:
        return False


def inspect_evidence(path: Path) -> Result:
    """The verdicts on the evidence in a file. Raises UserError: it cannot be read, or is broken."""
    name = shown(path.name)
    try:
        with path.open("rb") as file:
            cases = grouped(read_lines(iter(partial(file.readline, MOST_LINE_OCTETS), b"")))
    except OSError as error:
        raise UserError(f"{name} cannot be read ({error.strerror or error}): check the file.") from error
    except ValueError as error:
        raise UserError(f"{name} is broken evidence ({error}): export it again from its run.") from error
    judgements = [judge(evidence) for evidence in cases.values()]
    rows = tuple(
        (
            one.code,
            TonedText(RESULT_WORDS[one.result], _TONES[one.result]),
            USE_CASES[one.code].title,
            shown(one.reason),
        )
        for one in judgements
    )
    failed = [one.code for one in judgements if one.result == FAILED]
    passed = sum(one.result == PASSED for one in judgements)
    return Result(
        (
            f"{name}: {passed} of {len(rows)} use cases passed, {len(failed)} failed.",
            "",
            TextTable(("Code", "Result", "Use case", "Reason"), rows),
        ),
        {one.code: {"result": RESULT_WORDS[one.result], "reason": one.reason} for one in judgements},
        passed=not failed,
    )
