"""Each use case passes, its evidence gives the same verdict wherever it was stored, and altered evidence does not."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import asn1tools
import pytest

from labconsole_v2x.messages.asn1_modules import compiled
from labconsole_v2x.pki.authorization_messages import HMAC_KEY_SIZE, read_authorization_request
from labconsole_v2x.pki.request_parts import read_data
from labconsole_v2x.pki.secured_messages import payload_of
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.stations.capture import ETHERNET_HEADER
from labconsole_v2x.stations.sending import CamSender, Identity
from labconsole_v2x.use_cases.cases import packet_cases
from labconsole_v2x.use_cases.cases.bench import Bench, BenchSettings, Parts
from labconsole_v2x.use_cases.cases.case_runs import RUNS, run_case
from labconsole_v2x.use_cases.catalogue import USE_CASES
from labconsole_v2x.use_cases.evidence import (
    FORMAT,
    MOST_OCTETS,
    VERSION,
    Evidence,
    Kind,
    Record,
    encode_line,
    header_line,
    is_evidence,
    of_table,
    read_lines,
)
from labconsole_v2x.use_cases.expectations import Decisions, Figure
from labconsole_v2x.use_cases.judging import FAILED, NOT_TESTED, PASSED, judge
from tests.labconsole_v2x.use_cases.broken_parts import slow
from tests.labconsole_v2x.use_cases.case_lab import (
    SETTINGS,
    dropped,
    evidence_of,
    judged_from_file,
    lines_of,
    replaced,
    table_of,
)

PACKETS = ("F-SIG-01", "A-SIG-01", "A-SIG-05")
"""Cases whose criteria are about packets alone."""
STEPS = (7, pytest.param(1, marks=pytest.mark.nightly))
"""Every seventh record is altered in CI, each one at night."""
PASSED_BY_DECISIONS = ("FUN-03", "F-CER-04", "A-CER-05", "A-IVS-01")


@pytest.mark.parametrize("code", RUNS)
def test_case_passes_and_its_stored_evidence_gives_the_same_verdict(code: str) -> None:
    evidence = evidence_of(code)
    judgement = judge(evidence)
    assert (judgement.code, judgement.result) == (code, PASSED), judgement.reason
    stored = of_table(table_of(evidence.records))
    assert list(stored) == [code]
    assert stored[code].records == evidence.records
    assert list(read_lines(lines_of(evidence.records))) == evidence.records, "so that it is judged so, too"
    assert judge(stored[code]) == judgement


def test_age_of_the_first_emergency_cam_has_no_loading_of_the_codec(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy computer takes more than the two seconds that receivers allow; here the loading alone takes them."""
    load = asn1tools.compile_dict

    def load_slowly(*arguments: Any, **options: Any) -> Any:
        time.sleep(2.2)
        return load(*arguments, **options)

    monkeypatch.setattr(asn1tools, "compile_dict", load_slowly)
    compiled.cache_clear()
    judgement = judge(run_case("F-SIG-06", SETTINGS))
    assert judgement.result == PASSED, judgement.reason


def test_time_to_create_packets_is_not_in_their_age() -> None:
    """A busy computer or a slow token takes more than the two seconds that receivers allow."""
    asleep: list[float] = []

    def slow_at_first(kind: Callable[..., CamSender], identity: Identity, **settings: Any) -> CamSender:
        sender = kind(identity, **settings)
        create = sender.create

        def create_slowly(*arguments: Any) -> Any:
            if not asleep:
                asleep.append(2.2)
                time.sleep(asleep[0])
            return create(*arguments)

        sender.create = create_slowly  # type: ignore[method-assign]
        return sender

    evidence = run_case("A-SIG-04", SETTINGS, parts=Parts(sender=slow_at_first))
    assert asleep
    verdicts = {record.result for record in evidence.of(Kind.RECEIVED)}
    assert verdicts == {"accepted", "signature invalid"}


def test_overload_by_packets_that_were_sent_late_is_not_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packet_cases, "_FLOOD_PACKETS", 40)
    monkeypatch.setattr(packet_cases, "_FLOOD_S", 0.1)
    monkeypatch.setattr(packet_cases, "_IN_TIME_S", 0.0)
    judgement = judge(run_case("A-SIG-04", SETTINGS))
    assert judgement.result == NOT_TESTED
    assert re.match(r"This computer sent CAMs up to \d\.\d s late", judgement.reason)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("code", PACKETS)
def test_altered_verdict_of_any_receiver_is_found(code: str, step: int) -> None:
    records = evidence_of(code).records
    for at in positions(records, Kind.RECEIVED)[::step]:
        for verdict in {"accepted", "signature invalid", "receiver queue full", "no such verdict"} - {
            records[at].result
        }:
            judgement = judged_from_file(replaced(records, at, result=verdict))
            assert judgement.result == FAILED, (at, verdict)
            assert re.search("sent, .* 1 receiver queue full|a second verification says", judgement.reason)


@pytest.mark.parametrize("code", PASSED_BY_DECISIONS)
def test_altered_decision_is_found(code: str) -> None:
    records = evidence_of(code).records
    counted = {one.label for one in USE_CASES[code].criteria if isinstance(one, Decisions)}
    for at in [at for at in positions(records, Kind.DECISION) if records[at].label in counted][::5]:
        judgement = judged_from_file(replaced(records, at, result="something else"))
        assert judgement.result == FAILED
        assert records[at].label in judgement.reason and "1 x something else" in judgement.reason


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("code", PACKETS)
def test_altered_octet_of_any_packet_is_found(code: str, step: int) -> None:
    records, random = evidence_of(code).records, Random(code)
    for at in positions(records, Kind.RECEIVED)[::step] + positions(records, Kind.SENT)[::step]:
        octets, begin = bytearray(records[at].octets), ETHERNET_HEADER * (records[at].kind is Kind.SENT)
        octets[random.randrange(begin, len(octets))] ^= 1 << random.randrange(8)
        judgement = judged_from_file(replaced(records, at, octets=bytes(octets)))
        assert judgement.result == FAILED
        assert re.search("no packet with these octets was sent|a second verification says", judgement.reason)


@pytest.mark.parametrize("code", PACKETS)
def test_altered_certificate_of_a_receiver_is_found(code: str) -> None:
    records = evidence_of(code).records
    of_receiver = [at for at in positions(records, Kind.ROOT, Kind.KNOWN) if records[at].number]
    assert of_receiver
    for at in of_receiver:
        octets = bytearray(records[at].octets)
        octets[-1] ^= 1
        assert judged_from_file(replaced(records, at, octets=bytes(octets))).result == FAILED
        assert judged_from_file(replaced(records, at, octets=b"no certificate")).result == FAILED


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("code", [*PACKETS, *PASSED_BY_DECISIONS])
def test_dropped_record_is_found(code: str, step: int) -> None:
    records = evidence_of(code).records
    for at in (*range(0, len(records), (1 + len(records) // 60) * step), len(records) - 1):
        left = [*records[:at], *records[at + 1 :]]
        assert judged_from_file(left).result == (FAILED if at < len(records) - 1 else NOT_TESTED)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("code", PACKETS)
def test_dropped_record_is_found_though_the_number_of_records_was_adjusted(code: str, step: int) -> None:
    records = evidence_of(code).records
    needed = positions(records, Kind.RECEIVER)
    needed += positions(records, Kind.SENT)[::step] + positions(records, Kind.RECEIVED)[::step]
    needed += [at for at in positions(records, Kind.ROOT, Kind.KNOWN) if records[at].number]
    for at in needed:
        assert judged_from_file(dropped(records, at)).result == FAILED, records[at]


def test_other_time_of_reception_is_found() -> None:
    records = evidence_of("F-SIG-01").records
    at = positions(records, Kind.RECEIVED)[3]
    judgement = judge(Evidence("F-SIG-01", replaced(records, at, at_us=records[at].at_us + 10_000_000)))
    assert judgement.reason == (
        "CAM: a receiver's verdict was accepted, a second verification says generation time too old."
    )


def test_evidence_without_its_end_is_not_tested() -> None:
    """As after a kill in the middle of a case."""
    records = evidence_of("F-SIG-01").records
    for count in range(1, len(records)):
        judgement = judge(Evidence("F-SIG-01", records[:count]))
        assert judgement == ("F-SIG-01", NOT_TESTED, "The run ended during it, or its evidence is incomplete")
    assert judge(Evidence("F-SIG-01")).result == NOT_TESTED


def test_evidence_that_cannot_be_read_is_a_failure() -> None:
    random = Random(3)
    for code in ("F-SNS-03", "F-CER-01", "F-CER-02", "F-PSN-01", "F-ENC-01", "F-IVS-01"):
        records = evidence_of(code).records
        for _ in range(30):
            at = random.randrange(len(records) - 1)
            changes: Sequence[dict[str, Any]] = (
                {"octets": random.randbytes(random.randrange(300))},
                {"octets": records[at].octets[:-1]},
                {"label": "", "result": ""},
                {"kind": random.choice(list(Kind)[:10])},
                {"at_us": random.choice((-1, 1 << 70))},
                {"number": random.choice((-1, 1 << 40))},
            )
            judge(Evidence(code, replaced(records, at, **random.choice(changes))))  # raises nothing
    for lost in (Kind.ROOT, Kind.KNOWN):
        ones = [one for one in evidence_of("F-CER-01").records if one.kind is not lost]
        judgement = judge(Evidence("F-CER-01", replaced(ones, len(ones) - 1, number=len(ones) - 1)))
        assert judgement.result == FAILED and judgement.reason


@pytest.mark.parametrize(
    ("record", "judged"),
    [
        (Record("F-SIG-01", Kind.NOT_TESTED, 1, result="There is no token."), (NOT_TESTED, "There is no token.")),
        (Record("F-SIG-01", Kind.FAULT, 1, result="No room."), (FAILED, "The case broke off: No room.")),
        (Record("F-SIG-01", Kind.RECEIVED, 1, 7, "CAM", "accepted"), (FAILED, "Record 1: receiver 7 is unknown.")),
        (Record("F-SIG-01", Kind.RECEIVER, 1, 1, "{}x"), (FAILED, "The evidence cannot be read: Extra data")),
        (Record("F-SIG-01", Kind.BEGUN, 1), (FAILED, "CAM: 0 sent, none received.")),
    ],
    ids=lambda value: value.kind.name if isinstance(value, Record) else "",
)
def test_reason_is_what_was_recorded(record: Record, judged: tuple[str, str]) -> None:
    result, reason = judge(Evidence("F-SIG-01", [record, Record("F-SIG-01", Kind.ENDED, 2, 1)]))[1:]
    assert result == judged[0] and reason.startswith(judged[1]), reason


@pytest.mark.parametrize(
    ("error", "reason"),
    [(ValueError("what went wrong"), "ValueError: what went wrong"), (AssertionError(), "AssertionError: ")],
)
def test_case_that_breaks_off_fails_with_the_reason(
    error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks_off(bench: Bench) -> None:
        bench.receiver()
        raise error

    monkeypatch.setitem(RUNS, "F-SIG-01", breaks_off)  # type: ignore[arg-type]
    assert judge(run_case("F-SIG-01", SETTINGS)) == ("F-SIG-01", FAILED, f"The case broke off: {reason}")


def test_packets_that_are_judged_twice_are_not_counted_for_others() -> None:
    """Three wait for the AA's certificate; a slow receiver judges them again while the next ones are sent."""
    evidence = run_case("F-CER-02", SETTINGS, parts=Parts(check=slow))
    verdicts = [one.result for one in evidence.of(Kind.RECEIVED)]
    assert judge(evidence).result == PASSED
    assert len(verdicts) == len(evidence.of(Kind.SENT)) + verdicts.count("unknown issuer") + verdicts.count(
        "unknown signer"
    )
    assert "receiver queue full" not in verdicts


def test_rate_that_is_not_reached_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packet_cases, "_HIGH_RATE_S", 0.002)
    judgement = judge(run_case("F-SIG-03", BenchSettings(rate=100_000)))
    assert judgement.result == FAILED
    assert "rate sent, of the rate asked for: 0.0" in judgement.reason


@pytest.mark.parametrize(
    ("code", "kinds", "figure"),
    [
        ("F-CER-04", (Kind.OPENED,), "enrolment credential in what the AA has read"),
        ("F-CER-04", (Kind.OPENED,), "keys of tickets in what the EA has read"),
        ("F-CER-01", (Kind.MESSAGE,), "octets of the itsId in messages as sent"),
        ("F-PSN-05", (Kind.MESSAGE,), "keys of tickets in what the RSU has carried"),
        ("F-ENC-01", (Kind.MESSAGE,), "plaintexts found in what was sent"),
        ("F-SIG-07", (Kind.CERTIFICATE,), "tickets beyond the credential"),
        ("F-CER-02", (Kind.RECEIVED,), "packets accepted before the AA was known"),
        ("F-IVS-01", (Kind.SENT,), "CAMs whose position is not that of the sensors"),
    ],
)
def test_figure_of_what_must_not_be_found_needs_something_to_search(
    code: str, kinds: tuple[Kind, ...], figure: str
) -> None:
    evidence = evidence_of(code)
    criterion = next(one for one in USE_CASES[code].criteria if isinstance(one, Figure) and one.label == figure)
    assert criterion.finding(evidence).met
    empty = Evidence(code, [one for one in evidence.records if one.kind not in kinds])
    assert criterion.finding(empty) == (False, f"{figure}: not recorded")


@pytest.mark.parametrize("code", ["F-CER-04", "A-CER-06"])
def test_no_hmac_key_of_a_request_is_recorded(code: str) -> None:
    opened = evidence_of(code).of(Kind.OPENED, "AA")
    requests = [read_data(payload_of(scan_signed_data(one.octets)))[1] for one in opened]
    assert len(requests) >= 5
    assert {read_authorization_request(one).hmac_key for one in requests} == {bytes(HMAC_KEY_SIZE)}


def test_file_of_another_version_is_refused() -> None:
    records = evidence_of("FUN-01").records
    for header in (
        {"format": FORMAT, "version": VERSION + 1},
        {"format": "another", "version": VERSION},
        {"format": FORMAT},
        [],
    ):
        lines = [json.dumps(header).encode(), *map(encode_line, records)]
        with pytest.raises(ValueError, match=r"^line 1: not evidence of this version$"):
            list(read_lines(lines))
    assert is_evidence(b"".join(lines_of(records)))
    assert not is_evidence(b'{"format":"another"}') and not is_evidence(b"")


def changed(**values: Any) -> bytes:
    """The line of a record with other values."""
    return json.dumps({"case": "F-SIG-01", "kind": "sent", "at_us": 1} | values).encode()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"7",
        b"null",
        b"[" * 100_000,
        changed(kind="unknown"),
        changed(kind=5),
        changed(case="F-SIG-99"),
        changed(case=1),
        changed(octets="0g"),
        changed(octets=5),
        changed(octets="00" * (MOST_OCTETS + 1)),
        changed(at_us="1"),
        changed(at_us=1.5),
        changed(at_us=True),
        changed(number=[1]),
        changed(number="1"),
        changed(label=1),
        changed(label=None),
        changed(result=["accepted"]),
        changed(further="field"),
        b'{"case": "F-SIG-01", "kind": "sent"}',
        b'{"kind": "sent", "at_us": 1}',
    ],
    ids=range(25),
)
def test_broken_line_is_refused_with_its_number(line: bytes) -> None:
    good = encode_line(Record("F-SIG-01", Kind.SENT, 1))
    with pytest.raises(ValueError, match=r"^line 3: "):
        list(read_lines([header_line(), good, line, good]))


@pytest.mark.parametrize("alter", [lambda one: one[:-1], lambda one: b"x" + one], ids=["cut", "shifted"])
def test_line_of_a_case_that_was_cut_is_refused(alter: Callable[[bytes], bytes]) -> None:
    lines = lines_of(evidence_of("F-SIG-01").records)
    cut = alter(lines[5].rstrip())
    with pytest.raises(ValueError, match=r"^line 6: "):
        list(read_lines([*lines[:5], cut, *lines[6:]]))


def positions(records: Sequence[Record], *kinds: Kind) -> list[int]:
    """Where the records of these kinds are: all, or some 60 of many."""
    found = [at for at, one in enumerate(records) if one.kind in kinds]
    return found[:: 1 + len(found) // 60]
