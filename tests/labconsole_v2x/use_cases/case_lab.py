"""Use cases in tests: each is run once with software keys, and its evidence is altered as a file may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole_v2x.use_cases.cases.bench import BenchSettings
from labconsole_v2x.use_cases.cases.case_runs import run_case
from labconsole_v2x.use_cases.evidence import (
    EVIDENCE,
    Evidence,
    Kind,
    Record,
    columns_of,
    encode_line,
    grouped,
    header_line,
    read_lines,
)
from labconsole_v2x.use_cases.expectations import Figure
from labconsole_v2x.use_cases.judging import Judgement, judge
from tests.helpers.repeated_runs import repeated

SETTINGS = BenchSettings(rate=100)
"""The lowest rate, which a busy computer keeps up with."""
_SENT_IN_TIME = Figure("rate sent, of the rate asked for", least=0.95)


@cache
def evidence_of(code: str) -> Evidence:
    """The evidence of a case that was run once; tests that alter it copy its records."""
    return steady_case(code, SETTINGS)


def steady_case(code: str, settings: BenchSettings) -> Evidence:
    """The evidence of a case, which is repeated twice at most where the computer has sent its packets late."""

    def in_time(evidence: Evidence) -> bool:
        return not evidence.of(Kind.NOT_TESTED) and (code != "F-SIG-03" or _SENT_IN_TIME.finding(evidence).met)

    return repeated(lambda _: run_case(code, settings), in_time)


def lines_of(records: Iterable[Record]) -> list[bytes]:
    """The lines of a file with these records."""
    return [header_line(), *map(encode_line, records)]


def judged_from_file(records: Iterable[Record]) -> Judgement:
    """The verdict on the only case in a file with these records."""
    (evidence,) = grouped(read_lines(lines_of(records))).values()
    return judge(evidence)


def table_of(records: Sequence[Record]) -> dict[str, NDArray[Any]]:
    """The records as stored samples."""
    columns = columns_of(records)
    return {column.name: np.array(columns[column.name], column.numpy_type) for column in EVIDENCE.columns}


def replaced(records: Sequence[Record], at: int, **values: Any) -> list[Record]:
    """The records with other values in one of them."""
    return [*records[:at], records[at]._replace(**values), *records[at + 1 :]]


def dropped(records: Sequence[Record], at: int) -> list[Record]:
    """The records without one of them, of which the last has the right number nevertheless."""
    kept = [*records[:at], *records[at + 1 :]]
    return replaced(kept, len(kept) - 1, number=len(kept) - 1) if kept[-1].kind is Kind.ENDED else kept
