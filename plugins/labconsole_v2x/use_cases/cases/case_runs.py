"""Runs a use case on a bench of its own, and returns its evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from labconsole.errors import UserError
from labconsole_v2x.use_cases.cases.bench import Bench, BenchSettings, CaseClock, Parts, Recorder
from labconsole_v2x.use_cases.cases.content_cases import CONTENT_CASES
from labconsole_v2x.use_cases.cases.function_cases import FUNCTION_CASES
from labconsole_v2x.use_cases.cases.packet_cases import PACKET_CASES
from labconsole_v2x.use_cases.cases.pki_cases import PKI_CASES
from labconsole_v2x.use_cases.cases.pseudonym_cases import PSEUDONYM_CASES
from labconsole_v2x.use_cases.cases.root_cases import ROOT_CASES
from labconsole_v2x.use_cases.cases.station_cases import STATION_CASES
from labconsole_v2x.use_cases.evidence import Evidence, Kind, Record

if TYPE_CHECKING:
    from labconsole.security.token.cryptoki.opening import Token

RUNS: Mapping[str, Callable[[Bench], None]] = {
    **CONTENT_CASES,
    **FUNCTION_CASES,
    **PACKET_CASES,
    **PKI_CASES,
    **ROOT_CASES,
    **STATION_CASES,
    **PSEUDONYM_CASES,
}
"""What each case does, by its code."""


def run_case(code: str, settings: BenchSettings, token: Token | None = None, parts: Parts = Parts()) -> Evidence:  # noqa: B008
    """The evidence of a case; one that breaks off has the reason in it, and no other case is affected."""
    clock = CaseClock()
    recorder = Recorder(code, clock)
    recorder.add(Kind.BEGUN, label=settings.backend.value)
    bench = Bench(recorder, clock, settings, parts, token)
    try:
        with bench.resources:
            RUNS[code](bench)
    except UserError as error:
        recorder.add(Kind.FAULT, result=str(error))
    except Exception as error:  # noqa: BLE001 - whatever a unit under test does
        recorder.add(Kind.FAULT, result=f"{type(error).__name__}: {error}")
    records = list(recorder.records)
    return Evidence(code, [*records, Record(code, Kind.ENDED, clock(), len(records))])
