"""The trial `v2x.use-cases`: tests the source's use cases, and counts which passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.model.parameters import Parameters
from labconsole.model.trial import (
    Direction,
    Evaluation,
    Event,
    LiveChannel,
    Metric,
    MetricKind,
    RoleSpec,
    RunContext,
    Samples,
    Series,
    Trial,
    Verdict,
)
from labconsole.security.secrets import SecretRequest
from labconsole.security.token.named_tokens import find_configuration, pin_requests
from labconsole_v2x.security.backends import Backend
from labconsole_v2x.use_cases.catalogue import CODES, USE_CASES
from labconsole_v2x.use_cases.evidence import EVIDENCE, of_table
from labconsole_v2x.use_cases.judging import FAILED, NOT_TESTED, PASSED, Judgement, judge
from labconsole_v2x.use_cases.use_case_parameters import ALL, UseCaseParameters
from labconsole_v2x.use_cases.use_case_role import RESULTS_CHANNEL, TESTED_CHANNEL

_ROLE = "labconsole_v2x.use_cases.use_case_role:UseCaseRole"
_READY_S, _STALL_S = 60.0, 120.0
_COUNTED = sum(case.counted for case in USE_CASES.values())
_HIGHER, _LOWER = Direction.HIGHER, Direction.LOWER

METRICS = (
    MetricKind("passed", "Passed", "cases", _HIGHER, f"Use cases of the {_COUNTED} codes whose criteria are all met."),
    MetricKind("failed", "Failed", "cases", _LOWER, f"Use cases of the {_COUNTED} codes with a criterion not met."),
    MetricKind(
        "not_tested", "Not tested", "cases", _LOWER, f"Use cases of the {_COUNTED} codes without evidence in this run."
    ),
    MetricKind(
        "functions_passed",
        "Functions passed",
        "cases",
        _HIGHER,
        "Groups of underlying functions (section 2.3.1 of the source) whose criteria are all met.",
    ),
)
_UNITS = {kind.name: kind for kind in METRICS}


class UseCaseTrial(Trial[UseCaseParameters]):
    """Tests each use case with real packets, certificates and messages, and judges what was recorded."""

    kind: ClassVar[str] = "v2x.use-cases"
    title: ClassVar[str] = "V2X use cases"
    description: ClassVar[str] = (
        "Which use cases of PRESERVE pass? A check list of 36 codes that runs itself: signing, certificates, "
        "pseudonyms, encryption, and attacks on stations and PKI, each judged by recorded evidence."
    )
    parameters: ClassVar[type[Parameters]] = UseCaseParameters
    series: ClassVar[tuple[Series, ...]] = (EVIDENCE,)
    metrics: ClassVar[tuple[MetricKind, ...]] = METRICS
    key_metrics: ClassVar[tuple[str, ...]] = ("passed", "failed", "not_tested")
    finding_metrics: ClassVar[tuple[str, ...]] = ("passed", "failed")
    live: ClassVar[tuple[LiveChannel, ...]] = (TESTED_CHANNEL, RESULTS_CHANNEL)

    def secrets(self, parameters: UseCaseParameters) -> tuple[SecretRequest, ...]:
        return pin_requests(parameters.token) if parameters.backend is Backend.TOKEN else ()

    def run(self, parameters: UseCaseParameters, context: RunContext) -> None:
        role = context.start(_spec(parameters, context.seed))
        role.ready(_READY_S)
        begin_ns = now_ns()
        role.begin(begin_ns)
        context.expect(len(parameters.selected), TESTED_CHANNEL.name, begin_ns)
        context.event("T0", f"T0: {len(parameters.selected)} use cases.", begin_ns=begin_ns)
        context.wait([role], stall_s=_STALL_S, reason="A use case does not come to its end: read the log.")

    def evaluate(self, parameters: UseCaseParameters, samples: Samples, events: Sequence[Event]) -> Evaluation:
        found = {
            code: judge(evidence)
            for role in samples.roles(EVIDENCE.name)
            for code, evidence in of_table(samples.table(EVIDENCE.name, role)).items()
        }
        judgements = [found.get(code) or Judgement(code, NOT_TESTED, _untested(code, parameters)) for code in CODES]
        return Evaluation(tuple(_metrics(judgements)), tuple(map(_verdict, judgements)))

    def contrast(self, reference: UseCaseParameters, other: UseCaseParameters) -> str:
        one, two = reference.model_dump(exclude={"backend", "token"}), other.model_dump(exclude={"backend", "token"})
        token_against_software = reference.backend is Backend.OPENSSL and other.backend is Backend.TOKEN
        return "Token against software" if one == two and token_against_software else ""

    def warnings(self, parameters: UseCaseParameters) -> tuple[str, ...]:
        return tuple(_warnings(parameters))


def _spec(parameters: UseCaseParameters, seed: int) -> RoleSpec:
    configuration, missing = None, ""
    if parameters.backend is Backend.TOKEN:
        try:
            configuration = find_configuration(parameters.token)
        except UserError as error:
            missing = str(error)
    settings = {
        "codes": list(parameters.selected),
        "backend": parameters.backend.value,
        "rate": parameters.rate,
        "seed": seed,
        "token": parameters.token,
        "configuration": None if configuration is None else configuration.model_dump(mode="json"),
        "missing": missing,
    }
    secrets = () if configuration is None else (configuration.pin_request(parameters.token),)
    return RoleSpec("use-cases", _ROLE, settings, secrets)


def _untested(code: str, parameters: UseCaseParameters) -> str:
    return "The run ended before it" if code in parameters.selected else "Not among the chosen cases"


def _verdict(judgement: Judgement) -> Verdict:
    case = USE_CASES[judgement.code]
    reason = f"{case.title}. {judgement.reason}"
    return Verdict(judgement.code, judgement.result, reason if reason.endswith(".") else f"{reason}.")


def _metrics(judgements: Sequence[Judgement]) -> Iterator[Metric]:
    counted = Counter(one.result for one in judgements if USE_CASES[one.code].counted)
    functions = [one for one in judgements if not USE_CASES[one.code].counted]
    for name, result in (("passed", PASSED), ("failed", FAILED), ("not_tested", NOT_TESTED)):
        yield _metric(name, counted[result], _COUNTED)
    yield _metric("functions_passed", sum(one.result == PASSED for one in functions), len(functions))


def _metric(name: str, value: int, of: int) -> Metric:
    kind = _UNITS[name]
    return Metric(name, value, kind.unit, kind.direction, of)


def _warnings(parameters: UseCaseParameters) -> Iterator[str]:
    yield "All stations, authorities and attackers are on this computer, and no frame is on the air."
    if parameters.backend is Backend.TOKEN:
        yield "The keys of stations are in the token; those of authorities, and keys for encryption, are in software."
    if parameters.cases != ALL:
        yield f"{len(parameters.selected)} of {len(CODES)} cases were chosen: the others count as not tested."
