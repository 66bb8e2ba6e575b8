"""Live runs of stations, end to end: real keys, tickets and sockets, in all configurations; some in processes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labconsole.model.trial import Level
from labconsole_v2x.live.live_trial import LiveTrial
from labconsole_v2x.panel.station_board import StationBoard
from labconsole_v2x.security.scanning import scan_certificate
from labconsole_v2x.security.structures import Curve
from labconsole_v2x.stations.receiving import REASONS
from tests.helpers.recorded_runs import record_runs
from tests.helpers.udp_ports import free_udp_port
from tests.labconsole_v2x.live.live_lab import (
    PROCESSES,
    LiveLab,
    Outcome,
    is_incomplete,
    is_late,
    is_starved,
    run,
    run_on_a_busy_channel,
    steady_run,
)

DUE, COUNTED = 45, 30
"""CAMs of three stations at 10 Hz: of 1.5 s, and of the second after the warm-up."""
BIN = 2 ** (1 / 64) - 1
"""The middle of a bin of the live histogram is at most this far from any value in it."""
CONFIGURATIONS = ("full", "signed", "header", "none")
CASES: Mapping[str, Mapping[str, Any]] = {
    **{security: {"security": security} for security in CONFIGURATIONS},
    "token": {"signing": "token", "verification": "token"},
    "unicast": {"transport": "udp-unicast", "inclusion": "always"},
    "mixed chain": {"receivers": "all", "senders": 4, "processes": 2, "root_curve": "brainpoolP384r1"},
    "never": {"inclusion": "never"},
    "own load": {"inclusion": "congestion", "security": "signed", "rate": 100.0},
    "busy channel": {"inclusion": "congestion", "security": "signed", "rate": 40.0, "capture": False},
    "rules": {"generation": "rules", "duration": 2.0},
    "signed, all receive": {"security": "signed", "receivers": "all"},
    "dcc": {"generation": "rules", "dcc": True, "duration": 2.0},
    "plausibility": {"receivers": "all", "instances": 2, "plausibility": True, "duration": 2.0},
}
IN_PROCESSES = ("full", "token")
"""Cases whose roles are processes of their own; those of the others are threads of this process."""
Cases = Mapping[str, Outcome]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    """A run of each case, some at a time: nearly all of each is waiting."""

    def run_case(folder: Path, name: str) -> Outcome:
        if name == "busy channel":
            return steady_run(lambda: run_on_a_busy_channel(folder, **CASES[name]), is_starved)
        launcher = PROCESSES if name in IN_PROCESSES else None
        # A late first CAM moves the certificate of a second later towards the end.
        disturbed = {"own load": is_starved, "signed, all receive": is_late}.get(name, is_incomplete)
        return steady_run(lambda: run(folder, launcher=launcher, **CASES[name]), disturbed)

    return record_runs(tmp_path_factory, "live-cases", LiveLab, CASES, run_case, 3)


def counted(outcome: Outcome) -> int:
    """How many of the CAMs that count have been sent: of those of one process, a busy computer misses the last ones."""
    return max(0, COUNTED - outcome.too_late_of("stations"))


def all_accepted(outcome: Outcome, due: int = DUE, receivers: int = 1) -> None:
    """Every reception was accepted, and nothing was lost or sent twice."""
    figures = outcome.figures
    assert outcome.failure is None
    assert outcome.due == due
    assert figures["accepted"] == receivers * figures["sent"] > 0
    assert (figures["packet_loss"], figures["lost"], figures["duplicates"], figures["rejected"]) == (0, 0, 0, 0)
    assert set(outcome.labelled("lost").values()) == {0}
    assert figures["packet_delivery_ratio"] == 100
    assert outcome.verdicts["no packet was sent twice"] == outcome.verdicts["no packet was lost"] == "pass"


@pytest.mark.parametrize("security", CONFIGURATIONS)
def test_each_configuration_delivers_every_cam(cases: Cases, security: str) -> None:
    outcome = cases[security]
    all_accepted(outcome)
    figures = outcome.figures
    assert figures["received"] == figures["sent"]
    signed, verified = security in ("full", "signed"), security == "full"
    assert ("sign_time" in figures, "verify_time" in figures) == (signed, verified)
    assert ("waited" in figures, "warm_up_time" in figures) == (security == "full",) * 2
    assert figures["offered_rate"] == COUNTED
    assert figures["send_rate"] == figures["accept_rate"] == counted(outcome)


def test_sizes_are_near_those_of_the_source(cases: Cases) -> None:
    """89 B without security header, about 180 B with digest, about 450 B with certificate (section 4.1.3)."""
    sizes = {name: cases[name].labelled("packet_size") for name in CONFIGURATIONS}
    assert 80 < sizes["none"]["none"] < 100 and sizes["none"].keys() == {"none"}
    for name in ("full", "signed", "header"):
        outcome = cases[name]
        octets, certificate = outcome.column("sent", "size"), outcome.column("sent", "certificate") == 1
        counts = outcome.column("sent", "due_ns") >= outcome.begin_ns + outcome.parameters.warm_up * 1e9
        signers = {"certificate": octets[counts & certificate], "digest": octets[counts & ~certificate]}
        assert sizes[name] == {signer: pytest.approx(of.mean()) for signer, of in signers.items() if len(of)}
        medians = np.median(octets[~certificate]), np.median(octets[certificate])
        assert 165 < medians[0] < 195 and 300 < medians[1] < 450, "some answer requests, too"
    included_s, omitted_s = seconds_since_certificates(cases["full"])
    assert max(omitted_s) < 1, "once a second"
    assert sum(seconds < 1 for seconds in included_s) <= 3 * 2, "and earlier as an answer to a request"


def seconds_since_certificates(outcome: Outcome) -> tuple[list[float], list[float]]:
    """How long after its last certificate a station has sent each CAM with another one, and each without."""
    columns = (outcome.column("sent", name).tolist() for name in ("identity", "station", "certificate"))
    seconds: tuple[list[float], list[float]] = ([], [])
    last_us: dict[int, float] = {}
    for generated_us, station, certificate in sorted(zip(*columns, strict=True)):
        seconds[not certificate].append((generated_us - last_us.get(station, -np.inf)) / 1e6)
        if certificate:
            last_us[station] = generated_us
    return seconds


def test_roles_are_processes_of_their_own(cases: Cases) -> None:
    pids = cases["full"].pids
    assert len(pids) == 2 and len({os.getpid(), *pids.values()}) == 3
    assert set(pids) == {"receiver", "stations-1-3"}
    assert set(cases["mixed chain"].samples.roles("sent")) == {"stations-1-2", "stations-3-4"}


def test_receiver_learns_tickets_and_authority_from_the_air(cases: Cases) -> None:
    outcome = cases["full"]
    reasons = outcome.column("received", "reason")
    waited = outcome.column("received", "waited") == 1
    assert outcome.figures["waited"] == np.count_nonzero(reasons > 0) > 0
    assert {REASONS[number] for number in reasons[reasons > 0]} <= {"unknown signer", "unknown issuer"}
    assert waited.any() and set(reasons[waited & (reasons == 0)]) == {0}, "packets that waited were accepted"
    first_ns = dict[int, int]()
    columns = (outcome.column("received", name) for name in ("source", "done_ns"))
    for source, done_ns in zip(*(column[reasons == 0].tolist() for column in columns), strict=True):
        first_ns[source] = min(done_ns, first_ns.get(source, done_ns))
    known = (first_ns[source] for source in set(outcome.column("sent", "source").tolist()))
    assert outcome.figures["warm_up_time"] == pytest.approx((max(known) - outcome.begin_ns) / 1e9)
    assert outcome.figures["neighbours"] == 3


def test_first_request_for_the_authority_is_answered(tmp_path: Path) -> None:
    """Request, own certificate, answer: two intervals of 100 ms after the receiver's first CAM; a busy machine may miss
    one of them."""
    learned_s: list[float] = []
    while not learned_s or (min(learned_s) > 0.4 and len(learned_s) < 3):
        outcome = run(tmp_path / f"run-{len(learned_s)}", warm_up=0.0, duration=0.8)
        learned_s.append(outcome.figures.get("warm_up_time", 9.9))
    assert min(learned_s) < 0.4, learned_s


def test_warm_up_counts_for_no_figure_but_the_totals(cases: Cases) -> None:
    outcome = cases["full"]
    samples = {metric.name: metric.samples for metric in outcome.evaluation.metrics if not metric.labels}
    assert {samples[name] for name in ("latency_p50", "packet_loss", "send_rate", "sign_time")} == {counted(outcome)}
    assert {samples[name] for name in ("sent", "received", "age_p50")} == {outcome.figures["sent"]}
    names = zip(*(outcome.column("sent", name).tolist() for name in ("source", "identity")), strict=True)
    due = dict(zip(names, outcome.column("sent", "due_ns").tolist(), strict=True))
    columns = ("source", "identity", "done_ns", "reason")
    rows = zip(*(outcome.column("received", name).tolist() for name in columns), strict=True)
    accepted = [(due[source, identity], done) for source, identity, done, reason in rows if not reason]
    from_ns = outcome.begin_ns + outcome.parameters.warm_up * 1e9
    counted_ms = [(done - due_ns) / 1e6 for due_ns, done in accepted if due_ns >= from_ns]
    assert (len(accepted), len(counted_ms)) == (outcome.figures["sent"], counted(outcome))
    assert outcome.figures["latency_mean"] == pytest.approx(sum(counted_ms) / counted(outcome))


def assert_live_is_stored(outcome: Outcome) -> None:
    """The last live values are those of the stored samples."""
    figures = outcome.figures
    for name in ("sent", "received", "accepted"):
        assert figures[name] == outcome.live(name), name
    of_the_run = np.isin(outcome.column("received", "source"), outcome.column("stations", "source"))
    assert np.count_nonzero(of_the_run & (outcome.column("received", "reason") == 0)) == outcome.live("delivered")
    assert np.count_nonzero(outcome.column("received", "reason")) == outcome.live("rejected")
    ages = outcome.frame.channels["age"]
    assert ages.count == figures["accepted"]
    for fraction, figure in ((0.5, "age_p50"), (0.99, "age_p99")):
        assert ages.histogram.quantile(fraction) == pytest.approx(figures[figure] * 1e6, rel=BIN)


@pytest.mark.parametrize("case", CASES)
def test_last_live_values_equal_the_stored_figures(cases: Cases, case: str) -> None:
    assert_live_is_stored(cases[case])


def test_all_stations_receive_over_a_chain_of_mixed_curves(cases: Cases) -> None:
    outcome = cases["mixed chain"]
    all_accepted(outcome, 4 * 15, 3)
    root, authority = (scan_certificate(outcome.artefacts[name]) for name in ("root.oer", "aa.oer"))
    assert (root.verification_key.curve, authority.verification_key.curve) == (Curve.BRAINPOOL_P384R1, Curve.P256)
    assert outcome.figures["neighbours"] == 3
    stations = {mac: number for number, mac in zip(*_pairs(outcome), strict=True)}
    received = zip(outcome.column("received", "source"), outcome.column("received", "receiver"), strict=True)
    assert all(stations[source] != receiver for source, receiver in received), "no station receives its own"


def _pairs(outcome: Outcome) -> tuple[list[int], list[int]]:
    """Station and MAC address of each instance."""
    return outcome.column("stations", "station").tolist(), outcome.column("stations", "source").tolist()


def test_certificates_are_included_by_the_policy(cases: Cases) -> None:
    shares = {name: cases[name].figures["certificate_share"] for name in ("unicast", "never")}
    assert shares["unicast"] > 85, "an answer to a request goes with a digest"
    assert shares["never"] == 0
    all_accepted(cases["never"])
    assert cases["never"].figures["waited"] == 0, "the receiver knows all tickets before"
    unverified = cases["signed, all receive"]
    included_s, omitted_s = seconds_since_certificates(unverified)
    assert max(omitted_s) < 1 <= min(included_s), "once a second, also where none verifies"
    assert len(included_s) > 3, "the first CAM of each has one, and that of a second later"
    from_ns = unverified.begin_ns + unverified.parameters.warm_up * 1e9
    included = unverified.column("sent", "certificate")[unverified.column("sent", "due_ns") >= from_ns]
    assert unverified.figures["certificate_share"] == pytest.approx(100 * included.mean())


@pytest.mark.parametrize(("case", "due"), [("own load", 450), ("busy channel", 180)])
def test_certificates_are_omitted_on_a_loaded_channel(cases: Cases, case: str, due: int) -> None:
    """So few messages that a busy computer sends them: stations omit two of three certificates by 300 messages a second
    of their own, and ten of eleven on a channel that others fill."""
    outcome = cases[case]
    least, most = (3, 50) if case == "busy channel" else (10, 70)
    assert least < outcome.figures["certificate_share"] < most
    assert outcome.figures["sent"] + outcome.too_late == due, "a busy machine may be too slow for some"
    in_a_row = max(omitted_in_a_row(outcome))
    if case == "busy channel" and not outcome.too_late:
        assert in_a_row == 10
    assert 1 <= in_a_row <= 10


def omitted_in_a_row(outcome: Outcome) -> list[int]:
    """How many CAMs without certificate each station has sent in a row, at most."""
    stations, certificates = outcome.column("sent", "source"), outcome.column("sent", "certificate")
    return [
        max(len(run) for run in "".join(map(str, certificates[stations == station])).split("1"))
        for station in np.unique(stations)
    ]


def test_unicast_delivers_to_the_receiver_and_its_requests_to_the_senders(cases: Cases) -> None:
    outcome = cases["unicast"]
    all_accepted(outcome)
    assert outcome.figures["waited"] > 0


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
def test_raw_ethernet_on_the_loopback_interface(tmp_path: Path) -> None:
    """Other tests may send on it, too: their frames are of no station of the run."""
    outcome = steady_run(lambda: run(tmp_path / "run", transport="ethernet", capture=False), is_incomplete)
    if outcome.failure is not None and "CAP_NET_RAW" in outcome.failure:
        pytest.skip("needs CAP_NET_RAW")
    assert outcome.failure is None
    figures = outcome.figures
    assert (outcome.due, figures["lost"], figures["duplicates"]) == (DUE, 0, 0)
    assert outcome.verdicts["no packet was lost"] == "pass" and figures["waited"] > 0


def test_token_signs_and_verifies(cases: Cases) -> None:
    outcome = cases["token"]
    all_accepted(outcome)
    assert outcome.figures["sign_time"] > 0 < outcome.figures["verify_time"]
    assert LiveTrial().secrets(outcome.parameters) == ()


def test_generation_rules_send_as_much_as_the_motion_asks_for(cases: Cases) -> None:
    outcome = cases["rules"]
    assert outcome.failure is None and "offered_rate" not in outcome.figures
    times, stations = outcome.column("sent", "due_ns"), outcome.column("sent", "station")
    for station in (1, 2, 3):
        gaps_ms = np.diff(np.sort(times[stations == station])) / 1e6
        assert len(gaps_ms) and gaps_ms.min() >= 99.9 and gaps_ms.max() <= 1000.1
        assert set((np.round(gaps_ms) % 100).tolist()) == {0}, "checked each 100 ms"


def test_genuine_stations_pass_the_plausibility_checks(cases: Cases) -> None:
    """Two instances of a station are two tickets in one place, and each receiver moves itself."""
    outcome = cases["plausibility"]
    assert outcome.failure is None and outcome.figures["lost"] == outcome.figures["rejected"] == 0
    reported = outcome.events_named("implausible content")
    assert [event.data["found"] for event in reported] == [{}] * len(reported) and reported


def test_congestion_control_on_a_free_channel_changes_nothing(cases: Cases) -> None:
    outcome = cases["dcc"]
    assert outcome.failure is None and outcome.figures["packet_loss"] == 0
    assert [event.data["skipped"] for event in outcome.events_named("end")] == [0, 0]
    gaps_ms = np.diff(np.sort(outcome.column("sent", "due_ns")[outcome.column("sent", "station") == 1])) / 1e6
    assert gaps_ms.min() >= 99.9 and gaps_ms.max() <= 1000.1


@pytest.mark.parametrize("senders", [75, 180])
def test_every_station_is_reported_at_the_rate_of_the_window(tmp_path: Path, senders: int) -> None:
    """A process reports 30 of its stations at a time, eight times a second."""
    boards: list[StationBoard] = []

    def watch(lab: LiveLab) -> None:
        board = StationBoard()
        boards.append(board)
        while len(board.stations) <= senders and not lab.over:
            board.take(lab.context.frame())
            time.sleep(0.01)
        lab.cancel()

    lab = LiveLab(tmp_path / "run", live_hz=8.0, during=watch)
    outcome = lab.run(senders=senders, rate=1.0, duration=30.0, processes=1, capture=False)
    assert outcome.failure is None
    assert len(boards[0].stations) == senders + 1


def test_stopped_station_sends_nothing_until_it_is_started(tmp_path: Path) -> None:
    counts: list[tuple[int, int]] = []

    def stop_and_start(lab: LiveLab) -> None:
        lab.until_sent(2, 3)
        lab.command("stop-station", 2)
        lab.until_sent(1, lab.sent_by(1) + 5)
        counts.append((lab.sent_by(1), lab.sent_by(2)))
        lab.until_sent(1, lab.sent_by(1) + 8)
        counts.append((lab.sent_by(1), lab.sent_by(2)))
        lab.command("stop-station", 99)
        lab.command("start-station", 2)
        lab.until_sent(2, counts[1][1] + 4)
        lab.cancel()

    outcome = LiveLab(tmp_path / "run", during=stop_and_start).run(rate=20.0, duration=60.0)
    (one, two), (one_later, two_later) = counts
    assert outcome.failure is None
    assert one_later >= one + 8 and two_later == two
    assert [event.data["command"] for event in outcome.events_named("command")] == [
        "stop-station",
        "stop-station",
        "start-station",
    ]
    (unknown,) = outcome.events_named("no such station")
    assert unknown.message == "There is no sending station 99 in this run."
    numbers = outcome.column("sent", "station")
    assert np.count_nonzero(numbers == 2) >= two + 4
    gaps_s = np.diff(outcome.column("sent", "due_ns")[numbers == 2]) / 1e9
    assert gaps_s.max() > 0.4, "eight CAMs of the others at 20 Hz"


def test_runs_of_two_consoles_on_one_group_trust_each_other_by_root_files(tmp_path: Path) -> None:
    """The second trusts the first one's root; the first does not know the second one's."""
    transport = {"group": "239.7.7.7", "port": free_udp_port()}
    outcomes: list[Outcome] = []

    def second(lab: LiveLab) -> None:
        (tmp_path / "root.oer").write_bytes(lab.artefacts["root.oer"])
        roots = (str(tmp_path / "root.oer"),)
        outcomes.append(LiveLab(tmp_path / "second").run(**transport, roots=roots, senders=2, duration=1.5))
        lab.cancel()

    first = LiveLab(tmp_path / "first", during=second).run(**transport, duration=60.0)
    (other,) = outcomes
    assert (first.failure, other.failure) == (None, None)
    assert first.figures["foreign"] > 20 < other.figures["foreign"]
    theirs = np.isin(other.column("received", "source"), first.column("stations", "source", roadside=True))
    accepted = other.column("received", "reason") == 0
    assert np.count_nonzero(theirs & accepted) > 10, "their authority was asked for and learned from the air"
    unknown = np.isin(first.column("received", "source"), other.column("stations", "source", roadside=True))
    assert unknown.any() and not (unknown & (first.column("received", "reason") == 0)).any()
    for outcome in (first, other):
        assert (outcome.figures["lost"], outcome.verdicts["no packet was lost"]) == (0, "pass")
    assert not [event for event in other.samples.events if event.level is not Level.INFO]


def test_full_queue_loses_packets_of_other_stations_only(tmp_path: Path) -> None:
    """P-384 takes too long for these rates; a station's own packets are never in its queue."""
    outcome = run(
        tmp_path / "run",
        launcher=PROCESSES,  # in one process senders would wait for receivers
        **{"warm_up": 0.2, "duration": 0.5, "senders": 6, "rate": 100.0},
        **{"curve": "p384", "receivers": "all", "processes": 2, "queue_limit": 1},
    )
    assert outcome.failure is None
    lost = outcome.labelled("lost")
    assert lost["receiver queue"] > 0 and outcome.verdicts["no packet was lost"] == "fail"
    assert sum(lost.values()) == outcome.figures["lost"]
    assert_live_is_stored(outcome)
    stations = {mac: number for number, mac in zip(*_pairs(outcome), strict=True)}
    full = outcome.column("received", "reason") == REASONS.index("receiver queue full")
    rows = zip(outcome.column("received", "source")[full], outcome.column("received", "receiver")[full], strict=True)
    assert all(stations[source] != receiver for source, receiver in rows)
