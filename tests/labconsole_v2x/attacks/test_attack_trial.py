"""Live runs under attack, end to end: each attack is rejected for its reason, and a broken receiver is shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from labconsole_v2x.attacks.attack_parameters import AttackParameters
from labconsole_v2x.attacks.attack_trial import AttackTrial
from labconsole_v2x.choices import Attack
from labconsole_v2x.stations.receiving import REASONS
from tests.helpers.recorded_runs import record_runs
from tests.labconsole_v2x.attacks.attack_lab import AttackLab, CredulousReceiver, LonelyReceiver, run
from tests.labconsole_v2x.live.live_lab import PROCESSES, Outcome, is_incomplete, is_late

BENIGN, ATTACKS = 30, 40
"""Packets in the second that counts: of three stations at 10 Hz, of two attackers at 20 Hz."""
ALL_BENIGN, ALL_ATTACKS = 45, 60
"""Those of the whole run of 1.5 s."""
SIGNATURE_FIRST = {"order": "signature-first"}
CASES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "invalid signature": ("signature invalid", {"attack": "a-sig-01"}),
    "DENM with invalid signature": ("signature invalid", {"attack": "a-sig-02"}),
    "no signature": ("not secured", {"attack": "a-sig-03"}),
    "replay": ("duplicate", {"attack": "a-sig-05"}),
    "replay, signature first": ("duplicate", {"attack": "a-sig-05", **SIGNATURE_FIRST}),
    "old timestamp": ("generation time too old", {"attack": "a-sig-06"}),
    "old timestamp, signature first": ("generation time too old", {"attack": "a-sig-06", **SIGNATURE_FIRST}),
    "expired certificate": ("ticket expired", {"attack": "a-cer-03"}),
    "expired certificate, signature first": ("ticket expired", {"attack": "a-cer-03", **SIGNATURE_FIRST}),
    "every station receives": ("signature invalid", {"attack": "a-sig-01", "receivers": "all"}),
    "unicast": ("signature invalid", {"attack": "a-sig-01", "transport": "udp-unicast", "inclusion": "always"}),
}
ACCEPTED, REJECTED_RIGHTLY = "no attack packet was accepted", "attack packets were rejected for what is wrong with them"


CONTENT = {"attack": "a-con-01", "warm_up": 2.0}
"""The warm-up is long enough for attackers to know station IDs, and for the receiver to know their movement."""
CONTENT_CASES: Mapping[str, Mapping[str, Any]] = {
    "mixed": {"falsehood": "mixed"},
    "position": {"falsehood": "position"},
    "speed": {"falsehood": "speed"},
    "duplicate": {"falsehood": "duplicate"},
    "every station receives": {"receivers": "all"},
    "no checks": {"plausibility": False},
}
DETECTED, NO_ALARM = "implausible content was detected", "genuine content raised no alarm"
BROKEN = ("a-sig-01", "a-sig-03", "a-sig-05", "a-sig-06", "a-cer-03")
Cases = Mapping[str, Outcome]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    """A run of each case, some at a time: nearly all of each is waiting."""
    run_case = lambda folder, name: run(folder, **CASES[name][1])  # noqa: E731
    return record_runs(tmp_path_factory, "attack-cases", AttackLab, CASES, run_case)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    """A run of each of these with implausible content; it is right at any lateness, unless CAMs are missing."""

    def run_case(folder: Path, name: str) -> Outcome:
        return run(folder, disturbed=is_incomplete, **CONTENT, **CONTENT_CASES[name])

    return record_runs(tmp_path_factory, "attack-content", AttackLab, CONTENT_CASES, run_case)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    """A run of each of these attacks, with a receiver that verifies nothing."""
    run_case = lambda folder, name: run(folder, CredulousReceiver, disturbed=is_incomplete, attack=name)  # noqa: E731
    return record_runs(tmp_path_factory, "attack-broken", AttackLab, BROKEN, run_case)


def read_in_time(outcome: Outcome, waited: int = 0) -> tuple[int, int]:
    """How many packets of stations and of attackers were read in the time that counts, whenever they were due.

    `waited`: 1 for those that were checked again.
    """
    from_ns = outcome.begin_ns + outcome.parameters.warm_up * 1e9
    return read(outcome, from_ns, from_ns + outcome.parameters.duration * 1e9, waited)


def read(outcome: Outcome, from_ns: float = 0, until_ns: float = np.inf, waited: int = 0) -> tuple[int, int]:
    """How many packets of stations and of attackers were read between two times."""
    received_ns = outcome.column("received", "received_ns")
    in_time = (received_ns >= from_ns) & (received_ns < until_ns) & (outcome.column("received", "waited") == waited)
    of_attackers = rows_of_attackers(outcome)
    of_stations = np.isin(outcome.column("received", "source"), outcome.column("stations", "source")) & ~of_attackers
    return int(np.count_nonzero(in_time & of_stations)), int(np.count_nonzero(in_time & of_attackers))


def rows_of_attackers(outcome: Outcome) -> NDArray[np.bool_]:
    """Which of the received rows are those of attackers' packets."""
    attackers = outcome.column("stations", "source")[outcome.column("stations", "station") > 3]
    return np.isin(outcome.column("received", "source"), attackers)


def attack_packets(outcome: Outcome) -> int:
    """How many packets attackers have sent, at any time."""
    return int(np.count_nonzero(outcome.column("sent", "station") > 3))


def assert_all_sent(outcome: Outcome, attacks: int = ALL_ATTACKS) -> None:
    """All packets were sent, but those that a busy computer is too slow for; those due in the second are counted."""
    parameters = outcome.parameters
    assert isinstance(parameters, AttackParameters)
    assert outcome.due == ALL_BENIGN
    stations, due_s = outcome.column("sent", "station"), (outcome.column("sent", "due_ns") - outcome.begin_ns) / 1e9
    without = [int(min(due_s[stations == attacker]) * parameters.attack_rate) for attacker in (4, 5)]
    assert attack_packets(outcome) + outcome.too_late_of("attackers") == attacks - sum(without)
    if parameters.attack is not Attack.REPLAY:
        assert without == [0, 0], "only a replay needs something to send again"
    in_time, of_attackers = due_s >= parameters.warm_up, stations > 3
    assert outcome.figures["attack_sent"] == np.count_nonzero(in_time & of_attackers)
    assert outcome.figures["send_rate"] == np.count_nonzero(in_time & ~of_attackers), "attackers are no senders"
    if not outcome.too_late:
        assert outcome.figures["attack_sent"] == pytest.approx(attacks * 2 / 3, abs=2)
        assert outcome.figures["send_rate"] == pytest.approx(BENIGN, abs=1)


@pytest.mark.parametrize("case", CASES)
def test_attack_is_rejected_for_its_reason_and_costs_no_cam(cases: Cases, case: str) -> None:
    outcome, (reason, settings) = cases[case], CASES[case]
    assert outcome.failure is None
    figures, receivers = outcome.figures, 3 if settings.get("receivers") == "all" else 1
    assert_all_sent(outcome)
    waited = read_in_time(outcome, waited=1)[1]
    unknown = {"unknown issuer": waited} if waited else {}  # where the AA is learnt late they have two verdicts
    assert outcome.labelled("attack_rejected") == {reason: figures["attack_received"], **unknown}
    assert (figures["false_accepts"], figures["lost"], figures["packet_delivery_ratio"]) == (0, 0, 100)
    assert outcome.verdicts[ACCEPTED] == outcome.verdicts[REJECTED_RIGHTLY] == "pass"
    benign, attacks = read_in_time(outcome)
    heard_each = 2 if receivers > 1 else 1
    assert figures["attack_received"] == attacks and read(outcome)[1] == receivers * attack_packets(outcome)
    if not is_late(outcome):  # else packets of before are read in the second that counts
        each = 1 + int(outcome.lateness_ms // 50)  # packets of an attacker, more or less: its interval is 50 ms
        assert attacks == pytest.approx(ATTACKS * receivers, abs=2 * each * receivers)
        assert benign == pytest.approx(BENIGN * heard_each, abs=3 * heard_each), "each station at most one more or less"
    assert figures["benign_share"] == pytest.approx(100 * benign / (benign + attacks), abs=2)
    assert 0 < figures["rejected_time"] < figures["receiver_load"] < 100
    assert figures["attack_packet_time"] > 0 < figures["goodput"]
    assert "foreign" not in figures


def test_attackers_are_counted_apart_and_stations_of_their_own(cases: Cases) -> None:
    outcome = cases["no signature"]
    assert set(outcome.column("stations", "station").tolist()) == {1, 2, 3, 4, 5}
    of_attackers = outcome.column("sent", "station") > 3
    assert outcome.live("attacked") == np.count_nonzero(of_attackers) > ATTACKS
    assert outcome.live("sent") == outcome.figures["sent"] == np.count_nonzero(~of_attackers)
    assert set(outcome.samples.roles("sent")) >= {"stations-1-3", "attackers-4-5"}
    assert outcome.samples.roles("received") == ["receiver"], "attackers record what they send alone"
    titles = [one.title for one in AttackTrial().curves(outcome.parameters, outcome.samples, outcome.samples.events)]
    assert {"Sent", "Attackers, sent", "Not secured", "p50", "Loss"} <= set(titles)


def test_invalid_signatures_come_with_tickets_that_are_valid(cases: Cases) -> None:
    """No signature under it was valid, so that the receiver has not learnt it: it is looked at each time."""
    outcome = cases["invalid signature"]
    stations = outcome.column("stations", "source")[outcome.column("stations", "station") > 3]
    attackers = np.isin(outcome.column("received", "source"), stations)
    reasons = {REASONS[number] for number in outcome.column("received", "reason")[attackers].tolist()}
    assert reasons == {"signature invalid"}
    assert outcome.column("sent", "certificate")[outcome.column("sent", "station") > 3].all()


def test_replay_after_the_window_is_too_old(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", attack="a-sig-05", replay_delay=0.6, cam_past=300.0)
    assert set(outcome.labelled("attack_rejected")) == {"generation time too old"}
    assert outcome.figures["false_accepts"] == outcome.figures["lost"] == 0


def test_overload_is_rejected_and_takes_a_part_of_the_receiver(tmp_path: Path) -> None:
    """Too much for one process. On a busy computer packets wait for the receiver: they are not too old for that."""
    outcome = run(tmp_path / "run", launcher=PROCESSES, attack="a-sig-04", attack_rate=400.0, cam_past=10_000.0)
    figures = outcome.figures
    assert outcome.failure is None and set(outcome.labelled("attack_rejected")) == {"signature invalid"}
    assert_all_sent(outcome, 2 * 600)
    benign, attacks = read_in_time(outcome)
    assert figures["benign_share"] == pytest.approx(100 * benign / (benign + attacks))
    assert figures["rejected_time"] > 3 and figures["false_accepts"] == 0


def test_without_attack_the_figures_are_those_of_the_stations(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", attack="none")
    assert outcome.failure is None and outcome.figures["benign_share"] == 100
    assert (outcome.figures["lost"], outcome.figures["rejected_time"]) == (0, 0)
    assert not {"attack_sent", "false_accepts"} & outcome.figures.keys() and ACCEPTED not in outcome.verdicts


@pytest.mark.parametrize("attack", BROKEN)
def test_receiver_that_verifies_nothing_is_shown_by_the_verdict(broken: Cases, attack: str) -> None:
    outcome = broken[attack]
    assert outcome.failure is None
    assert outcome.verdicts[ACCEPTED] == "fail"
    assert outcome.figures["false_accepts"] > ATTACKS / 2


def test_receiver_that_rejects_for_another_reason_is_shown_by_the_verdict(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", LonelyReceiver, attack="a-cer-03", **SIGNATURE_FIRST)
    assert outcome.verdicts[ACCEPTED] == "pass"
    assert outcome.verdicts[REJECTED_RIGHTLY] == "fail"
    assert "unknown issuer" in outcome.labelled("attack_rejected")


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        ("mixed", "station ID of another station"),
        ("position", "position jump"),
        ("speed", "speed against movement"),
        ("duplicate", "station ID of another station"),
        ("every station receives", "position jump"),
    ],
)
def test_implausible_content_is_detected_and_genuine_is_not(content: Cases, case: str, kind: str) -> None:
    outcome = content[case]
    assert outcome.failure is None
    figures = outcome.figures
    assert figures["detection_rate"] >= 95 and figures["false_alarm_rate"] == figures["lost"] == 0
    assert outcome.labelled("attack_rejected").keys() == {"implausible content"}
    assert figures["attack_rejected"] == pytest.approx(figures["attack_received"], rel=0.05)
    assert {outcome.verdicts[name] for name in (DETECTED, NO_ALARM, REJECTED_RIGHTLY)} == {"pass"}
    assert ACCEPTED not in outcome.verdicts, "the first CAMs may be accepted"
    reported = [event.data["found"] for event in outcome.events_named("implausible content")]
    assert sum(found.get(kind, 0) for found in reported) > 0


def test_receiver_that_does_not_check_plausibility_accepts_what_is_rightly_signed(content: Cases) -> None:
    outcome = content["no checks"]
    assert outcome.failure is None and outcome.verdicts[DETECTED] == "fail"
    assert outcome.figures["detection_rate"] == outcome.figures["attack_rejected"] == 0
    assert outcome.figures["false_accepts"] > ATTACKS and "false_alarm_rate" not in outcome.figures
    assert not outcome.events_named("implausible content")
