"""The verdict on a use case, from its evidence alone: what receivers decided is checked by a second verification."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from labconsole_v2x.security.distribution import Distribution
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.scanning import scan_certificate
from labconsole_v2x.security.trust import KeyLoader, TrustStore, UntrustedRootError, software_verifier
from labconsole_v2x.security.verification import CheckOrder, CheckSettings, Verifier
from labconsole_v2x.stations.capture import ETHERNET_HEADER
from labconsole_v2x.stations.plausibility import Plausibility
from labconsole_v2x.stations.receiving import QUEUE_FULL, REASONS, PacketCheck, ReceivedFrame, VerifiedCheck
from labconsole_v2x.stations.routes import CENTRE
from labconsole_v2x.use_cases.catalogue import USE_CASES
from labconsole_v2x.use_cases.evidence import Evidence, Kind, Record

PASSED, FAILED, NOT_TESTED = "pass", "fail", "unknown"
"""The results, as a `Verdict` has them."""
RESULT_WORDS = {PASSED: "passed", FAILED: "failed", NOT_TESTED: "not tested"}
_NO_MAC = bytes(6)


class Judgement(NamedTuple):
    """The verdict on a case: a result, and the counts or the fault that decided it."""

    code: str
    result: str
    reason: str


@dataclass(frozen=True)
class ReceiverSettings:
    """How a receiver of a case checks packets."""

    order: str = CheckOrder.CHEAP_FIRST.name
    plausibility: bool = False

    def to_json(self) -> str:
        """As it is recorded."""
        return json.dumps(asdict(self))


class CaseReceiver:
    """A receiver's checks with a clock that is set for each packet, so that they can be repeated."""

    def __init__(self, settings: ReceiverSettings, load_key: KeyLoader = software_verifier) -> None:
        self.now_us = 0
        self.trust = TrustStore(load_key=load_key)
        checks = CheckSettings(order=CheckOrder[settings.order], decode_content=False)
        self._plausibility = Plausibility(CENTRE) if settings.plausibility else None
        self.verifier = Verifier(self.trust, checks, clock=lambda: self.now_us)

    def check(self, distributions: Sequence[Distribution] = ()) -> PacketCheck:
        """The checks as receiving stations have them."""
        return VerifiedCheck(self.verifier, distributions, self._plausibility)


def judge(evidence: Evidence) -> Judgement:
    """The verdict on a case. Raises nothing: evidence that cannot be read is a failure."""
    try:
        return _judged(evidence)
    except Exception as error:  # noqa: BLE001 - a file from outside may have any records
        return Judgement(evidence.case, FAILED, f"The evidence cannot be read: {str(error) or type(error).__name__}.")


def _judged(evidence: Evidence) -> Judgement:
    code = evidence.case
    if missing := evidence.of(Kind.NOT_TESTED):
        return Judgement(code, NOT_TESTED, missing[0].result)
    if not (ended := evidence.of(Kind.ENDED)):
        return Judgement(code, NOT_TESTED, "The run ended during it, or its evidence is incomplete")
    if len(evidence.records) != ended[-1].number + 1:
        return Judgement(code, FAILED, f"The evidence has not the {ended[-1].number} records that it had.")
    if faults := evidence.of(Kind.FAULT):
        return Judgement(code, FAILED, f"The case broke off: {faults[0].result}")
    if different := next(_differences(evidence), None):
        return Judgement(code, FAILED, different)
    findings = [criterion.finding(evidence) for criterion in USE_CASES[code].criteria]
    failed = [finding.reason for finding in findings if not finding.met]
    return Judgement(
        code, FAILED if failed else PASSED, "; ".join(failed or [finding.reason for finding in findings]) + "."
    )


def _differences(evidence: Evidence) -> Iterator[str]:
    """The packets on which a second verification with the recorded certificates and times says something else."""
    receivers: dict[int, tuple[CaseReceiver, PacketCheck]] = {}
    sent: dict[str, set[bytes]] = {}
    for record in evidence.of(Kind.SENT):
        sent.setdefault(record.label, set()).add(record.octets[ETHERNET_HEADER:])
    for position, record in enumerate(evidence.records, 1):
        if record.kind is Kind.RECEIVER:
            receiver = CaseReceiver(ReceiverSettings(**json.loads(record.label)))
            receivers[record.number] = receiver, receiver.check()
        elif record.number in receivers and record.kind in (Kind.ROOT, Kind.KNOWN, Kind.DISTRUSTED):
            try:
                give(receivers[record.number][0].trust, record)
            except (MalformedDataError, UntrustedRootError) as error:
                yield f"Record {position}: the certificate cannot be used ({error})."
        elif record.kind is Kind.RECEIVED:
            if record.label in sent and record.octets not in sent[record.label]:
                yield f"Record {position}: no packet with these octets was sent as {record.label}."
            if record.result == QUEUE_FULL:
                continue
            if record.number not in receivers:
                yield f"Record {position}: receiver {record.number} is unknown."
                return
            receiver, check = receivers[record.number]
            receiver.now_us = record.at_us
            again = REASONS[check.check(ReceivedFrame(_NO_MAC, record.octets, record.at_us * 1000)).reason]
            check.released()
            if again != record.result:
                yield f"{record.label}: a receiver's verdict was {record.result}, a second verification says {again}."


def give(trust: TrustStore, record: Record) -> None:
    """Give a certificate of a record to a receiver. Raises `MalformedDataError` or `UntrustedRootError`."""
    if record.kind is Kind.ROOT:
        trust.add_root(scan_certificate(record.octets))
    elif record.kind is Kind.KNOWN:
        trust.add(scan_certificate(record.octets))
    else:
        trust.distrust(record.octets)
