"""Figures and verdicts of live runs by their definitions, on samples built by hand whose truth is known."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from labconsole.clock_comparison import HOST_COMPARED, Offset
from labconsole.model.trial import Event, Level, Origin
from labconsole_v2x.live.live_curves import curves
from labconsole_v2x.live.live_evaluation import distributions, evaluate
from labconsole_v2x.live.live_metrics import METRICS
from labconsole_v2x.live.live_trial import LiveTrial
from labconsole_v2x.stations.receiving import ReceivedPacket
from labconsole_v2x.stations.transmission import SentPacket
from tests.labconsole_v2x.live.synthetic_packets import (
    EVENTS,
    OTHER,
    ROADSIDE,
    A,
    B,
    C,
    Tables,
    at,
    evaluated,
    figures,
    parameters,
    received,
    samples,
    sent,
)

DUE = [1000.0 + 200 * number for number in range(10)]
"""Ten CAMs a station in the two seconds that count."""


def cams(source: int, **settings: Any) -> list[SentPacket]:
    return [sent(source, due, **settings) for due in DUE]


def arrivals(source: int, due: list[float] = DUE, **settings: Any) -> list[ReceivedPacket]:
    return [received(source, one, **settings) for one in due]


def test_loss_compares_sets_of_unique_packets_and_divides_them_by_place() -> None:
    """Of ten CAMs seven are accepted, one is rejected, one found no room, and one was never read."""
    rows = arrivals(A, DUE[:7])
    rows.append(received(A, DUE[7], reason="signature invalid"))
    rows.append(received(A, DUE[8], reason="receiver queue full"))
    rows += [
        received(A, DUE[0], after=3.0, reason="duplicate"),
        received(A, DUE[7], after=2.0, reason="signature invalid"),
    ]
    found = figures(samples(cams(A), rows))
    assert (found["sent"], found["received"], found["accepted"]) == (10, 11, 7)
    assert (found["packet_loss"], found["packet_delivery_ratio"], found["lost"]) == (30, 90, 3)
    assert (found["lost channel or socket"], found["lost receiver queue"], found["lost verification"]) == (1, 1, 1)
    assert found["duplicates"] == 2
    assert (found["rejected"], found["rejected signature invalid"]) == (1, 1)
    assert "foreign" not in found


def test_duplicates_that_are_accepted_count_once() -> None:
    """Where nothing is verified a repeated packet is accepted again."""
    rows = [*arrivals(A), *arrivals(A, DUE[:4], after=7.0)]
    found = figures(samples(cams(A), rows), security="signed")
    assert (found["packet_loss"], found["duplicates"], found["accept_rate"]) == (0, 4, 5)
    assert found["latency_max"] == pytest.approx(1.5), "the first of them counts"


@pytest.mark.parametrize("due", [0.0, 999.9, 3000.0, 3500.0])
def test_warm_up_and_what_is_due_after_the_end_count_for_the_totals_only(due: float) -> None:
    late = sent(A, due, late=400, size=900, certificate=True)
    found = figures(samples([*cams(A), late], arrivals(A)))
    alone = figures(samples(cams(A), arrivals(A)))
    assert found.pop("sent") == alone.pop("sent") + 1 == 11
    assert found == alone
    assert found["packet_loss"] == 0


def test_latency_counts_from_the_due_time() -> None:
    """A sender that is 40 ms late hides nothing, and its lateness is reported."""
    rows = [received(A, due, after=40 + number, done=0.5) for number, due in enumerate(DUE)]
    evaluation = evaluated(samples(cams(A, late=40.0), rows))
    found = {metric.name: metric for metric in evaluation.metrics}
    expected = {"p50": 44.5, "p95": 49.5, "p99": 49.5, "mean": 45.0, "max": 49.5}
    for name, value in expected.items():
        assert found[f"latency_{name}"].value == pytest.approx(value)
        assert found[f"latency_{name}"].not_judged == "the senders were late (p99 40 ms)"
        assert found[f"latency_{name}"].samples == 10
    assert found["send_lateness_p99"].value == pytest.approx(40)
    assert not evaluated(samples(cams(A, late=4.9), rows)).metrics[1].not_judged


def compared(host: str, uncertainty_ns: int) -> Event:
    """The comparison of the clock of a host."""
    offset = Offset(10**12, uncertainty_ns, 0, 10**12, 0, 0, 8).to_json()
    return Event(0, "worker", Level.INFO, HOST_COMPARED, "", {"host": host, "phase": "before", **offset})


def test_latency_between_hosts_is_judged_by_the_uncertainty_of_their_clocks() -> None:
    rows = [received(A, due, after=1.0, done=1.0) for due in DUE]
    tables = samples(cams(A), rows)
    for second_ns, doubt in ((50_000, ""), (150_000, "(± 0.25 ms, median 2 ms)")):
        events = [*EVENTS, compared("obu-1", 100_000), compared("obu-2", second_ns)]
        found = {metric.name: metric for metric in evaluate(parameters(), tables, events).metrics}
        assert found["latency_p50"].not_judged.endswith(doubt) and bool(found["latency_p50"].not_judged) is bool(doubt)
        assert (found["hosts"].value, found["clock_uncertainty"].value) == (2, (100_000 + second_ns) / 1e3)
        assert found["latency_p50"].uncertainty == (100_000 + second_ns) / 1e6
        assert found["age_p50"].not_judged and not found["accept_rate"].uncertainty
    assert "hosts" not in figures(tables)


def test_busy_computer_is_a_reason_not_to_judge_latency() -> None:
    """Half of its time went to other processes."""
    machine = [(0.0, 0, 0, 0, 0), (3000.0, 6_000_000_000, 4_000_000_000, 1_000_000_000, 0)]
    evaluation = evaluated(samples(cams(A), arrivals(A), machine=machine))
    assert evaluation.disturbed == "the computer was busy (other processes took 50% of its CPU time)"
    judged = {metric.name: metric.not_judged for metric in evaluation.metrics}
    assert judged["latency_p50"] == evaluation.disturbed and not judged["packet_loss"]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("unknown signer", False, 1.0), ("accepted", True, 30.0)], {"accepted": 1, "waited": 1, "rejected": 0}),
        ([("unknown issuer", False, 1.0), ("accepted", True, 30.0)], {"accepted": 1, "waited": 1, "rejected": 0}),
        (
            [("unknown signer", False, 1.0), ("unknown issuer", True, 9.0), ("accepted", True, 30.0)],
            {"accepted": 1, "waited": 1, "rejected": 0},
        ),
        ([("unknown signer", False, 1.0)], {"accepted": 0, "waited": 1, "rejected unknown signer": 1}),
        (
            [("unknown signer", False, 1.0), ("chain invalid", True, 30.0)],
            {"accepted": 0, "waited": 1, "rejected": 1, "rejected chain invalid": 1, "lost verification": 1},
        ),
    ],
)
def test_packet_that_waits_for_a_certificate_has_one_result(
    rows: list[tuple[str, bool, float]], expected: dict[str, float]
) -> None:
    receptions = [received(A, 1500, reason=name, waited=waited, after=after) for name, waited, after in rows]
    found = figures(samples([sent(A, 1500)], receptions))
    assert {name: found[name] for name in expected} == expected
    assert (found["received"], found["duplicates"]) == (1, 0)
    assert found["packet_loss"] == 100 * (1 - found["accepted"])
    if found["accepted"]:
        assert found["latency_max"] == pytest.approx(30.5), "until it was accepted"


def test_each_receiver_expects_the_cams_of_all_others() -> None:
    """Three stations receive; station 3 has missed half of what station 1 sent."""
    packets = [*cams(A), *cams(B), *cams(C)]
    rows = {
        "stations-1-2": [
            *[received(source, due, receiver=1) for source in (B, C) for due in DUE],
            *[received(source, due, receiver=2) for source in (A, C) for due in DUE],
        ],
        "stations-3-3": [
            *[received(A, due, receiver=3) for due in DUE[:5]],
            *[received(B, due, receiver=3) for due in DUE],
        ],
    }
    found = figures(samples(packets, rows), senders=3, receivers="all")
    assert (found["sent"], found["received"], found["lost"]) == (30, 55, 5)
    assert found["packet_loss"] == pytest.approx(100 * 5 / 60)
    assert found["accept_rate"] == 27.5 and found["neighbours"] == 2
    assert found["inter_arrival"] == pytest.approx(200), "of one instance at one receiver"
    assert found["duplicates"] == 0


def test_rows_of_several_threads_are_in_any_order() -> None:
    rows = [received(source, due, after=number / 7) for source in (A, B) for number, due in enumerate(DUE)]
    rows += [received(A, DUE[0], after=0.5, reason="unknown signer"), received(A, DUE[0], waited=True, after=90.0)]
    del rows[0]
    mixed = Random(1).sample(rows, len(rows))
    assert mixed != rows
    assert figures(samples([*cams(A), *cams(B)], mixed)) == figures(samples([*cams(A), *cams(B)], rows))


def test_rates_sizes_and_air_follow_from_the_octets() -> None:
    """180 octets are 218 on air, 1,766 bits in 37 symbols of 8 us, 336 us; 320 are 358, 2,886 bits, 61, 528 us."""
    packets = [*cams(A), *[sent(B, due, size=320, certificate=True) for due in DUE[:5]]]
    found = figures(samples(packets, [*arrivals(A), *arrivals(B, DUE[:5], content=110)]), rate=5.0)
    assert (found["offered_rate"], found["send_rate"], found["accept_rate"]) == (10, 7.5, 7.5)
    assert found["goodput"] == pytest.approx((10 * 90 + 5 * 110) * 8 / 1000 / 2)
    assert (found["packet_size digest"], found["packet_size certificate"]) == (180, 320)
    assert found["packet_size"] == pytest.approx((10 * 180 + 5 * 320) / 15)
    assert found["certificate_share"] == pytest.approx(100 * 5 / 15)
    assert found["air_rate"] == pytest.approx((10 * 218 + 5 * 358) * 8 / 1000 / 2)
    assert found["airtime"] == pytest.approx((10 * 336 + 5 * 528) / 2_000_000 * 100)
    unsecured = figures(samples(cams(A, size=89, sign_us=0), arrivals(A, verify_us=0)), security="none")
    assert unsecured["packet_size none"] == 89
    assert not {"certificate_share", "sign_time", "verify_time", "waited"} & unsecured.keys()


@pytest.mark.parametrize("settings", [{"generation": "rules"}, {"dcc": True}])
def test_no_rate_is_offered_where_none_is_set(settings: dict[str, Any]) -> None:
    assert "offered_rate" not in figures(samples(cams(A), arrivals(A)), **settings)


def test_times_to_sign_and_verify_are_those_of_packets_that_count() -> None:
    packets = [sent(A, due, sign_us=10 * (number + 1)) for number, due in enumerate(DUE)] + [sent(A, 10, sign_us=999)]
    rows = [received(A, due, verify_us=100 * (number + 1)) for number, due in enumerate(DUE[:9])]
    rows.append(received(A, DUE[9], verify_us=5000, reason="signature invalid"))
    found = figures(samples(packets, rows))
    assert (found["sign_time"], found["sign_time_p50"], found["sign_time_p99"]) == (55, 50, 100)
    assert (found["verify_time"], found["verify_time_p50"], found["verify_time_p99"]) == (500, 500, 900)
    shown = {one.title: one.values.tolist() for one in distributions(parameters(), samples(packets, rows), EVENTS)}
    assert sorted(shown["Time to sign"]) == [10.0 * (number + 1) for number in range(10)]
    assert len(shown["Time to verify"]) == len(shown["Latency"]) == 9


def test_inter_arrival_is_between_accepted_packets_as_they_were_read() -> None:
    """A lost one doubles an interval; processing has no part in it."""
    kept = [due for due in DUE if due != DUE[4]]
    found = figures(samples(cams(A), arrivals(A, kept, done=77.0)))
    assert found["inter_arrival"] == pytest.approx((7 * 200 + 400) / 8)
    assert found["inter_arrival_p99"] == pytest.approx(400)


def test_age_is_that_of_the_whole_run() -> None:
    packets = [sent(A, 100), *cams(A)]
    found = figures(samples(packets, [received(A, 100, age=300), *arrivals(A, age=2.0)]))
    assert (found["age_p50"], found["age_p99"]) == (2, 300)


def test_packets_of_other_stations_are_apart() -> None:
    """An identity is (sender, generation time): the same time of another sender is another packet."""
    rows = [*arrivals(A), *arrivals(OTHER, DUE[:3]), received(OTHER, DUE[4], reason="unknown issuer")]
    found = figures(samples(cams(A), rows))
    assert (found["foreign"], found["received"], found["accepted"]) == (4, 14, 13)
    assert (found["accept_rate"], found["packet_loss"], found["neighbours"]) == (5, 0, 1)


def test_packets_are_joined_by_sender_and_identity_not_by_their_mixed_key() -> None:
    """A packet of another station that was made to have the same 64 bits."""
    mix = 0x9E3779B97F4A7C15
    wanted = (A * mix ^ round(DUE[0] * 1000) ^ OTHER * mix) % 2**64
    forged = received(OTHER, DUE[0])._replace(identity=wanted - 2**64 if wanted >= 2**63 else wanted)
    found = figures(samples(cams(A), [*arrivals(A, DUE[1:]), forged]))
    assert (found["foreign"], found["lost"], found["lost channel or socket"]) == (1, 1, 1)


def test_roadside_station_sends_nothing_that_counts() -> None:
    found = figures(samples([*cams(A), *cams(ROADSIDE)], arrivals(A)))
    assert (found["sent"], found["packet_loss"]) == (10, 0)


def test_all_tickets_are_learned_once_each_receiver_has_accepted_each_instance() -> None:
    packets = [sent(A, 100), sent(B, 150), *cams(A), *cams(B)]
    rows = [received(A, 100, waited=True, after=600), *arrivals(A), received(B, 150), *arrivals(B)]
    assert figures(samples(packets, rows))["warm_up_time"] == pytest.approx(0.7005)
    events = [*EVENTS, compared("obu-1", 100_000), compared("obu-2", 50_000)]
    found = {metric.name: metric for metric in evaluate(parameters(), samples(packets, rows), events).metrics}
    assert found["warm_up_time"].uncertainty == 150_000 / 1e9, "from T0 by the console's clock, in s"
    only_one = figures(samples(packets, arrivals(A)))
    assert "warm_up_time" not in only_one and only_one["neighbours"] == 1


@pytest.mark.parametrize(("at_end", "verdict"), [(0, "pass"), (9, "fail")])
def test_receiver_that_keeps_up_has_no_longer_queue_at_the_end(at_end: int, verdict: str) -> None:
    """Readings before the first and after the last second that count are left out of its growth."""
    queue = {"receiver": [(500, 70), (1100, 2), (1900, 0), (2100, at_end), (2900, at_end + 2), (3600, 99)]}
    evaluation = evaluated(samples(cams(A), arrivals(A), queue=queue))
    found = {metric.name: metric.value for metric in evaluation.metrics}
    assert (found["queue_peak"], found["queue_growth"]) == (at_end + 2, at_end)
    kept_up = next(one for one in evaluation.verdicts if one.name == "the receiver kept up")
    assert (kept_up.result, kept_up.evidence) == (verdict, {"queue_growth": at_end, "no_room": 0})


def test_receiver_whose_queue_is_always_full_has_not_kept_up() -> None:
    rows = [*arrivals(A, DUE[:6]), *(received(A, due, reason="receiver queue full") for due in DUE[6:])]
    queue = {"receiver": [(1100, 100), (1900, 100), (2100, 100), (2900, 100), (3600, 0)]}
    evaluation = evaluated(samples(cams(A), rows, queue=queue))
    kept_up = next(one for one in evaluation.verdicts if one.name == "the receiver kept up")
    assert (kept_up.result, kept_up.evidence) == ("fail", {"queue_growth": 0, "no_room": 4})
    assert kept_up.reason == "4 packets found no room in its queue."


def test_time_to_sign_is_left_out_where_nothing_is_signed() -> None:
    assert "sign_time" in figures(samples(cams(A), arrivals(A)), security="signed")
    assert "sign_time" not in figures(samples(cams(A), arrivals(A)), security="header")


def test_run_without_a_receiver_for_its_cams_has_no_verdict_on_loss() -> None:
    evaluation = evaluated(samples(cams(A)), senders=1, receivers="all")
    verdict = next(one for one in evaluation.verdicts if one.name == "no packet was lost")
    assert verdict.result == "unknown"
    assert verdict.reason == "No station had a CAM to receive in the time that counts."


def test_processor_and_memory_are_those_of_each_role_after_the_warm_up() -> None:
    usage = {
        "receiver": [(500, 90.0, 900_000_000), (1500, 20.0, 50_000_000), (2500, 40.0, 60_000_000)],
        "worker": [(1500, 99.0, 1)],
    }
    found = figures(samples(cams(A), arrivals(A), usage=usage))
    assert {name: value for name, value in found.items() if name.startswith(("cpu", "memory"))} == {
        "cpu receiver": 30,
        "memory receiver": 60,
    }


def test_run_that_was_ended_counts_until_half_a_second_before_its_last_reading() -> None:
    """CAMs of the last half second may have been under way."""
    queue = {"receiver": [(1000, 0), (2300, 0)], "stations-2-2": [(1000, 0), (2500, 0)]}
    found = figures(samples(cams(A), arrivals(A, DUE[:4]), queue=queue))
    assert (found["send_rate"], found["accept_rate"], found["lost"]) == (5, 5, 0), "0.8 s"


def test_run_that_was_ended_at_once_has_no_loss_and_no_curves() -> None:
    tables = samples([sent(A, 10), sent(A, 110)], [received(A, 10)], queue={"receiver": [(50, 0), (300, 0)]})
    evaluation = evaluated(tables, warm_up=0.0)
    assert "packet_loss" not in {metric.name for metric in evaluation.metrics}
    assert [one.result for one in evaluation.verdicts if one.name == "no packet was lost"] == ["unknown"]
    assert curves(parameters(warm_up=0.0), tables, EVENTS) == ()


def test_curves_show_the_whole_run_by_time() -> None:
    """Rates over quarters of a second; a loss at the time at which the CAM was due."""
    packets = [sent(A, 100), *cams(A)]
    kept = [received(A, 100), *arrivals(A, [due for due in DUE if due != 1600.0], after=4.0, done=1.0)]
    kept.append(received(A, 1600, reason="signature invalid"))
    tables = samples(packets, kept, queue={"receiver": [(500, 3), (3600, 0)]})
    drawn = {curve.title: curve for curve in curves(parameters(), tables, EVENTS)}
    assert set(drawn) == {"Sent", "Received", "Accepted", "p50", "p99", "Loss", "Signature invalid", "receiver"}
    assert {name: round(drawn[name].values.sum() / 4) for name in ("Sent", "Received", "Accepted")} == {
        "Sent": 11,
        "Received": 11,
        "Accepted": 10,
    }
    loss = drawn["Loss"]
    assert loss.t_s[loss.values > 0].tolist() == [1.625] and loss.values.max() == 100
    assert drawn["p50"].values.tolist() == [1.5] + [5.0] * (len(drawn["p50"].values) - 1)
    assert drawn["Signature invalid"].values.max() == 4 and drawn["receiver"].values.tolist() == [3, 0]


def test_each_verdict_has_its_evidence() -> None:
    rows = arrivals(A, DUE[:8])
    verdicts = {one.name: one for one in evaluated(samples([*cams(A), sent(A, DUE[0])], rows)).verdicts}
    twice, lost = verdicts["no packet was sent twice"], verdicts["no packet was lost"]
    assert (twice.result, twice.evidence) == ("fail", {"sent": 11, "different": 10})
    assert (lost.result, lost.reason) == ("fail", "3 of 11 were not accepted.")
    good = {one.name: one.result for one in evaluated(samples(cams(A), arrivals(A))).verdicts}
    assert good == {"no packet was sent twice": "pass", "no packet was lost": "pass"}


def test_run_that_never_began_has_no_figures() -> None:
    evaluation = evaluate(parameters(), samples(cams(A), arrivals(A)), ())
    assert evaluation.metrics == () and evaluation.verdicts == ()
    nothing = evaluated(samples([]))
    assert {metric.value for metric in nothing.metrics} == {0}
    assert [one.result for one in nothing.verdicts] == ["pass", "unknown"]


def test_figures_have_unit_order_and_origin_of_their_kinds() -> None:
    usage, queue = {"receiver": [(1500, 20.0, 5)]}, {"receiver": [(1500, 0), (2500, 0), (3600, 0)]}
    rows = [*arrivals(A), *arrivals(B), *arrivals(OTHER)]
    metrics = evaluated(samples([*cams(A), *cams(B)], rows, usage=usage, queue=queue), tickets=2).metrics
    kinds = {kind.name: (kind.unit, kind.direction) for kind in METRICS}
    names = [kind.name for kind in METRICS]
    assert {metric.name for metric in metrics} == set(names) - {"hosts", "clock_uncertainty"}, "a run on one computer"
    assert all((metric.unit, metric.direction) == kinds[metric.name] for metric in metrics)
    assert [names.index(metric.name) for metric in metrics] == sorted(names.index(metric.name) for metric in metrics)
    calculated = {metric.name for metric in metrics if metric.origin is Origin.CALCULATED}
    assert calculated == {"air_rate", "airtime", "offered_rate"}
    assert LiveTrial().metrics == METRICS


def of_one_station(changed_ms: float) -> Tables:
    """CAMs of station 1 under two identities, the second one from a time on."""
    tables = samples([*cams(A)[:4], *cams(B)[4:]], [*arrivals(A)[:4], *arrivals(B)[4:]])
    stations = tables.tables["stations", "stations-1-3"]
    stations["station"][stations["source"] == B] = 1
    stations["from_ns"][stations["source"] == B] = at(changed_ms)
    return tables


def test_station_that_changes_its_identity_is_one_neighbour_and_loses_nothing() -> None:
    figures = {one.name: one.value for one in evaluated(of_one_station(DUE[4]), senders=1, tickets=2).metrics}
    assert (figures["identity_changes"], figures["neighbours"], figures["lost"]) == (1, 1, 0)
    assert figures["inter_arrival"] == pytest.approx(DUE[1] - DUE[0]), "across the change, too"
    before = {one.name: one.value for one in evaluated(of_one_station(500), senders=1, tickets=2).metrics}
    assert before["identity_changes"] == 0, "in the warm-up"
    assert not [one for one in evaluated(of_one_station(DUE[4]), senders=1).metrics if one.name == "identity_changes"]


def test_run_stored_before_identities_changed_is_still_evaluated() -> None:
    tables = samples(cams(A), arrivals(A))
    expected = evaluated(tables)
    del tables.tables["stations", "stations-1-3"]["from_ns"]
    assert evaluated(tables) == expected
