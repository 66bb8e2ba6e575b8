"""Figures and verdicts of runs under attack by their definitions, on packets made by hand whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from labconsole.model.trial import Evaluation
from labconsole_v2x.attacks.attack_evaluation import REASONS_OF, evaluate
from labconsole_v2x.attacks.attack_metrics import METRICS
from labconsole_v2x.attacks.attack_parameters import AttackParameters
from labconsole_v2x.choices import Attack
from labconsole_v2x.stations.channel import airtime_us, octets_on_air
from labconsole_v2x.stations.receiving import IMPLAUSIBLE, ReceivedPacket
from tests.labconsole_v2x.live.synthetic_packets import EVENTS, A, B, C, named, received, samples, sent

DUE = [1000.0 + 200 * number for number in range(10)]
"""Ten packets a station in the two seconds that count: A and B are benign, C attacks."""
ACCEPTED, REJECTED_RIGHTLY = "no attack packet was accepted", "attack packets were rejected for what is wrong with them"

DETECTED, NO_ALARM = "implausible content was detected", "genuine content raised no alarm"


def evaluated(
    benign: Sequence[ReceivedPacket], attacks: Sequence[ReceivedPacket], attack: str = "a-sig-01", **settings: Any
) -> Evaluation:
    """The evaluation of two benign stations and one attacker, with these packets at the receiver."""
    parameters = AttackParameters(
        **{"senders": 2, "warm_up": 1.0, "duration": 2.0, "attack": attack, "attackers": 1, **settings}
    )
    packets = [sent(source, due) for source in (A, B, C) for due in DUE]
    return evaluate(parameters, samples(packets, [*benign, *attacks]), EVENTS)


def cams(due: Sequence[float] = DUE, **settings: Any) -> list[ReceivedPacket]:
    return [received(source, one, **settings) for source in (A, B) for one in due]


def attacks(due: Sequence[float] = DUE, reason: str = "signature invalid", **settings: Any) -> list[ReceivedPacket]:
    return [received(C, one, reason=reason, **settings) for one in due]


def verdicts(evaluation: Evaluation) -> dict[str, str]:
    return {one.name: one.result for one in evaluation.verdicts}


def test_benign_share_and_delivery_ratio_are_different_figures() -> None:
    """Of 20 benign packets 15 are read, 14 of them accepted; of 10 of the attacker 5 are read."""
    benign = [*cams(DUE[:7]), received(A, DUE[7], reason="receiver queue full")]
    evaluation = evaluated(benign, attacks(DUE[:5]))
    found = named(evaluation)
    assert found["benign_share"] == 75
    assert (found["packet_delivery_ratio"], found["packet_loss"]) == (75, 30)
    assert (found["lost receiver queue"], found["lost channel or socket"]) == (1, 5)
    assert (found["attack_sent"], found["attack_received"], found["attack_rejected"]) == (10, 5, 5)
    assert found["false_accepts"] == 0 and found["sent"] == 20
    assert found["goodput"] == pytest.approx(14 * 90 * 8 / 1000 / 2)
    assert (found["latency_mean"], found["rejected"]) == (pytest.approx(1.5), 0)
    assert verdicts(evaluation)[ACCEPTED] == verdicts(evaluation)[REJECTED_RIGHTLY] == "pass"
    (said,) = [one.reason for one in evaluation.verdicts if one.name == ACCEPTED]
    assert said == "All 5 packets of attackers were rejected, the warm-up included."


def test_attackers_share_the_channel() -> None:
    """30 packets of one size in two seconds are on air, 10 of them the attacker's."""
    found = named(evaluated(cams(), attacks()))
    assert found["airtime"] == pytest.approx(30 * airtime_us(found["packet_size"]) / 2e4)
    assert found["air_rate"] == pytest.approx(30 * octets_on_air(found["packet_size"]) * 8 / 2e3)


def test_time_is_that_from_the_queue_to_the_verdict() -> None:
    """20 CAMs of 0.5 ms and 10 packets of an attacker of 8 ms, in two seconds."""
    found = named(evaluated(cams(), attacks(done=8.0)))
    assert found["attack_packet_time"] == 8000
    assert found["rejected_time"] == pytest.approx(100 * 10 * 8 / 2000)
    assert found["receiver_load"] == pytest.approx(100 * (10 * 8 + 20 * 0.5) / 2000)
    assert named(evaluated(cams(), attacks([2996.0], after=1.0, done=8.0)))["rejected_time"] == pytest.approx(0.15)


def test_packet_without_room_counts_as_received_and_takes_no_time() -> None:
    packets = [*attacks(DUE[:5], done=8.0), *attacks(DUE[5:], "receiver queue full", done=0.0)]
    evaluation = evaluated(cams(), packets)
    found = named(evaluation)
    assert (found["attack_rejected"], found["attack_rejected signature invalid"]) == (5, 5)
    assert (found["attack_received"], found["attack_packet_time"]) == (10, 8000)
    assert verdicts(evaluation)[REJECTED_RIGHTLY] == "pass"


def test_warm_up_counts_for_false_accepts_alone() -> None:
    evaluation = evaluated(cams(), [*attacks([500.0], "accepted"), *attacks()])
    found = named(evaluation)
    assert (found["false_accepts"], found["attack_received"], found["benign_share"]) == (1, 10, pytest.approx(200 / 3))
    (verdict,) = (one for one in evaluation.verdicts if one.name == ACCEPTED)
    assert (verdict.result, verdict.reason) == ("fail", "1 of 11 packets of attackers were accepted.")
    assert verdict.evidence == {"false_accepts": 1, "received": 11}


def test_replay_is_accepted_falsely_if_the_original_was_accepted_or_it_is_too_old() -> None:
    copies = attacks(DUE[:3], "accepted", after=5.0)
    assert named(evaluated(cams(), copies, "a-sig-05"))["false_accepts"] == 3
    lost = evaluated(cams(DUE[3:]), copies, "a-sig-05")
    assert named(lost)["false_accepts"] == 0 and verdicts(lost)[ACCEPTED] == "pass", "nothing is wrong with a lost CAM"
    assert named(lost)["packet_loss"] == 30, "but it is not the station's"
    twice = [*copies, *attacks(DUE[:3], "accepted", after=6.0)]
    assert named(evaluated(cams(DUE[3:]), twice, "a-sig-05"))["false_accepts"] == 3
    late = attacks(DUE[:3], "accepted", after=5.0, age=2001.0)
    assert named(evaluated(cams(DUE[3:]), late, "a-sig-05"))["false_accepts"] == 3
    assert named(evaluated(cams(DUE[3:]), copies, "a-sig-01"))["false_accepts"] == 3


def test_packet_that_waited_for_a_certificate_is_judged_by_its_last_verdict() -> None:
    """It has both in the figures."""
    early, again = attacks(DUE[:1], "unknown issuer"), attacks(DUE[:1], done=90.0, waited=True)
    evaluation = evaluated(cams(), [*early, *again, *attacks(DUE[1:])])
    found = named(evaluation)
    assert (found["attack_rejected signature invalid"], found["attack_rejected unknown issuer"]) == (10, 1)
    assert found["attack_received"] == 10 and verdicts(evaluation)[REJECTED_RIGHTLY] == "pass"
    for other in ([*early, *attacks(DUE[1:])], [*early, *attacks(DUE[:1], "malformed", done=90.0, waited=True)]):
        assert verdicts(evaluated(cams(), other))[REJECTED_RIGHTLY] == "fail"


def test_other_reason_than_that_of_the_attack_is_named() -> None:
    evaluation = evaluated(cams(), [*attacks(DUE[:9]), *attacks(DUE[9:], "malformed")])
    (verdict,) = (one for one in evaluation.verdicts if one.name == REJECTED_RIGHTLY)
    assert (verdict.result, verdict.reason) == (
        "fail",
        "Other reasons than that of A-SIG-01: invalid signature: malformed: 1.",
    )
    assert REASONS_OF.keys() == set(Attack) - {Attack.NONE, Attack.TRACKING}


def test_implausible_content_is_judged_by_the_share_that_was_detected() -> None:
    """Of 10 packets of the attacker 9 are detected, of 20 CAMs of benign stations one is taken for false."""
    benign = [*cams()[1:], received(A, DUE[0], reason=IMPLAUSIBLE)]
    packets = [*attacks(DUE[1:], IMPLAUSIBLE), *attacks(DUE[:1], "accepted")]
    evaluation = evaluated(benign, packets, "a-con-01")
    found, judged = named(evaluation), verdicts(evaluation)
    assert (found["detection_rate"], found["false_alarm_rate"], found["false_accepts"]) == (90, 5, 1)
    assert (judged[DETECTED], judged[NO_ALARM], judged[REJECTED_RIGHTLY]) == ("fail", "fail", "pass")
    assert ACCEPTED not in judged, "one CAM may be within plausible bounds"
    good = evaluated(cams(), [*attacks(reason=IMPLAUSIBLE), *attacks([500.0], "accepted")], "a-con-01")
    assert (named(good)["detection_rate"], named(good)["false_alarm_rate"]) == (100, 0)
    assert verdicts(good)[DETECTED] == verdicts(good)[NO_ALARM] == "pass"
    (said,) = (one.reason for one in good.verdicts if one.name == DETECTED)
    assert said == "100 % of 10 packets of attackers were rejected for it; at least 95 % must be."


def test_packets_without_room_are_neither_detected_nor_missed() -> None:
    packets = [*attacks(DUE[:5], IMPLAUSIBLE), *attacks(DUE[5:], "receiver queue full")]
    assert named(evaluated(cams(), packets, "a-con-01"))["detection_rate"] == 100
    nothing = evaluated(cams(), attacks(DUE, "receiver queue full"), "a-con-01")
    assert verdicts(nothing)[DETECTED] == "unknown"


def test_receiver_without_plausibility_checks_detects_nothing() -> None:
    evaluation = evaluated(cams(), attacks(reason="accepted"), "a-con-01", plausibility=False)
    found = named(evaluation)
    assert (found["detection_rate"], found["false_accepts"]) == (0, 10) and "false_alarm_rate" not in found
    assert verdicts(evaluation)[DETECTED] == "fail" and NO_ALARM not in verdicts(evaluation)
    assert "detection_rate" not in named(evaluated(cams(), attacks()))


def test_attackers_that_no_receiver_hears_prove_nothing() -> None:
    evaluation = evaluated(cams(), [])
    assert verdicts(evaluation)[ACCEPTED] == "unknown" and REJECTED_RIGHTLY not in verdicts(evaluation)
    assert named(evaluation)["benign_share"] == 100


def test_figures_are_in_the_order_of_their_definitions() -> None:
    names = [one.name for one in evaluated(cams(), attacks()).metrics]
    order = [kind.name for kind in METRICS]
    assert names == sorted(names, key=order.index) and len(order) == len(set(order))
