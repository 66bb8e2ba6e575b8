"""Cases on RP1 with packets alone: signed CAMs and DENMs, wrong ones of attackers, and missing certificates."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from math import ceil

from labconsole_v2x.attacks.attack_senders import AttackSender, DenmSender
from labconsole_v2x.security.distribution import Distribution
from labconsole_v2x.security.issuing import LabPki, issue
from labconsole_v2x.security.structures import CAM_PSID, Header
from labconsole_v2x.stations.routes import Movement
from labconsole_v2x.stations.sending import CamSender
from labconsole_v2x.use_cases.cases.bench import Bench, Station
from labconsole_v2x.use_cases.evidence import Kind

MANY = 20
"""Packets of a kind in most cases."""
_BENIGN = "CAM of a benign station"
_HIGH_RATE_S, _HIGH_RATE_STATIONS = 2.0, 15
_FLOOD_S, _FLOOD_ATTACKERS, _FLOOD_RATE, _FLOOD_BENIGN, _BENIGN_RATE = 2.0, 4, 100.0, 5, 10.0
_FLOOD_PACKETS = 400
"""At least so many of attackers: at a lower rate they send longer."""
_LEAD_US = 200_000
"""Time before the first packet."""
_IN_TIME_S = 1.0
"""Half of the time for which receivers accept a CAM: one that is sent later than this may be too old when it is
checked, however fast the receiver is."""
_OLD_S, _EXPIRED_S = 10.0, 1800
_LATE_S = 3.0
"""Longer than a receiver accepts a CAM."""


_INTERVAL_S = 0.1


def send_many(bench: Bench, label: str, station: Station, count: int = MANY) -> None:
    """Send so many packets of a station, ten a second of the case's clock."""
    for _ in range(count):
        bench.clock.advance(_INTERVAL_S)
        bench.send(label, station.frame())


def _cams(bench: Bench) -> None:
    bench.receiver()
    send_many(bench, "CAM", bench.station())


def _denms(bench: Bench) -> None:
    bench.receiver()
    send_many(bench, "DENM", bench.station(kind=DenmSender))


def _high_rate(bench: Bench) -> None:
    bench.receiver()
    bench.measured("rate asked for", bench.settings.rate)
    rate = bench.settings.rate / _HIGH_RATE_STATIONS
    sender = ("CAM at a high rate", lambda clock: bench.station(clock=clock), rate)
    _send_at(bench, _HIGH_RATE_S, [sender] * _HIGH_RATE_STATIONS)


def _attacked(label: str, attacker: Callable[[Bench], Station]) -> Callable[[Bench], None]:
    """A case in which an attacker and a benign station take turns."""

    def run(bench: Bench) -> None:
        bench.receiver()
        benign, attacking = bench.station(), attacker(bench)
        for _ in range(MANY):
            bench.send(label, attacking.frame())
            bench.send(_BENIGN, benign.frame())

    return run


def _with_wrong_key(sender: type[CamSender]) -> Callable[[Bench], Station]:
    return lambda bench: bench.station(signs_with=bench.new_key(), kind=sender)


def _overload(bench: Bench) -> None:
    bench.receiver()
    rate = min(_FLOOD_RATE, bench.settings.rate / _FLOOD_ATTACKERS)
    attacker = (
        "CAM, invalid signature",
        lambda clock: bench.station(signs_with=bench.new_key(), kind=AttackSender, clock=clock),
        rate,
    )
    benign = (_BENIGN, lambda clock: bench.station(clock=clock), _BENIGN_RATE)
    seconds = max(_FLOOD_S, _FLOOD_PACKETS / (rate * _FLOOD_ATTACKERS))
    late_s = _send_at(bench, seconds, [attacker] * _FLOOD_ATTACKERS + [benign] * _FLOOD_BENIGN)
    if late_s > _IN_TIME_S:
        bench.recorder.add(
            Kind.NOT_TESTED,
            result=f"This computer sent CAMs up to {late_s:.1f} s late: set a lower High rate, or run the case again "
            "while no other program is busy.",
        )


class _PlannedClock:
    """ITS time in us at which the next packet is due."""

    def __init__(self, now_us: int) -> None:
        self.at_us = now_us

    def __call__(self) -> int:
        return self.at_us


def _send_at(
    bench: Bench, seconds: float, senders: Sequence[tuple[str, Callable[[_PlannedClock], Station], float]]
) -> float:
    """Send the packets of stations at their rates, each as it is due (open loop); how late the latest was, in s.

    They are created and signed before, so that this process does nothing but receive meanwhile.
    """
    clock = _PlannedClock(bench.clock())
    stations = [create(clock) for _, create, _ in senders]
    due = sorted(
        (number / rate + offset / (rate * len(senders)), offset)
        for offset, (_, _, rate) in enumerate(senders)
        for number in range(ceil(seconds * rate))
    )
    frames = []
    with bench.clock.stopped():
        begin_us = bench.clock() + _LEAD_US
        for at_s, offset in due:
            clock.at_us = begin_us + round(at_s * 1e6)
            frames.append((clock.at_us, senders[offset][0], stations[offset].frame()))
    late_us = 0
    for at_us, label, frame in frames:
        time.sleep(max(0, at_us - bench.clock()) / 1e6)
        bench.send(label, frame, wait=False)
        late_us = max(late_us, bench.clock() - at_us)
    bench.settle()
    return late_us / 1e6


def _replayed(bench: Bench) -> None:
    bench.receiver()
    station = bench.station()
    frames = [station.frame() for _ in range(MANY)]
    for frame in frames:
        bench.send(_BENIGN, frame)
    for frame in frames:
        bench.send("CAM sent again at once", frame)
    bench.clock.advance(_LATE_S)
    for frame in frames:
        bench.send("CAM sent again late", frame)
    for frame in frames:
        bench.send("CAM with adjusted time", _adjusted(frame, bench.clock()))


def _adjusted(frame: bytes, now_us: int) -> bytes:
    """The frame with another generation time in its security header."""
    times = [at for at in range(len(frame) - 8) if abs(int.from_bytes(frame[at : at + 8], "big") - now_us) < 60_000_000]
    assert len(times) == 1
    return frame[: times[0]] + now_us.to_bytes(8, "big") + frame[times[0] + 8 :]


def _untrusted_chains(bench: Bench) -> None:
    bench.receiver()
    foreign = LabPki.create(bench.pki.root.validity.start_s)
    key = bench.pki.aa_key.generate()
    forged_aa = issue(
        key,
        key.public_key,
        bench.pki.aa.validity,
        issuer=bench.pki.root,
        name="Lab AA",
        permissions=bench.pki.aa.permissions,
        issue_permissions=bench.pki.aa.issue_permissions,
    )
    forged = LabPki(**{**vars(bench.pki), "aa": forged_aa, "aa_key": key})

    class Presenting(AttackSender):
        """Sends its AA's certificate in each CAM, as if it had been asked for."""

        def _header(self, movement: Movement, its_us: int, channel_ratio: float) -> tuple[Header, bool]:
            return Header(CAM_PSID, its_us, requested_certificate=forged_aa.octets), True

    benign = bench.station()
    under_another_root = bench.station(pki=foreign, kind=AttackSender)
    under_forged_aa = bench.station(pki=forged, kind=Presenting)
    for _ in range(MANY):
        bench.send("CAM under another root", under_another_root.frame())
        bench.send("CAM under a forged AA", under_forged_aa.frame())
        bench.send(_BENIGN, benign.frame())


def _missing_authority(bench: Bench) -> None:
    knowing = bench.receiver()
    station = bench.station()
    station.sender.distribution = Distribution(station.ticket, knowing.receiver.trust)
    learning = bench.receiver(knows=())
    asking = bench.station()
    asking.sender.distribution = Distribution(asking.ticket, learning.receiver.trust)
    knowing.distributions.append(station.sender.distribution)
    learning.distributions.append(asking.sender.distribution)
    for _ in range(3):
        bench.send("CAM before the AA is known", station.frame(), to=[learning])
    bench.send("CAM of the receiver", asking.frame(), to=[knowing])
    for _ in range(MANY + 1):
        bench.send("CAM after the AA is known", station.frame(), to=[learning])


def _compressed_keys(bench: Bench) -> None:
    bench.receiver()
    send_many(bench, "CAM, compressed key", bench.station())
    send_many(bench, "CAM, uncompressed key", bench.station(uncompressed=True))


PACKET_CASES: Mapping[str, Callable[[Bench], None]] = {
    "F-SIG-01": _cams,
    "F-SIG-02": _denms,
    "F-SIG-03": _high_rate,
    "F-SNS-03": _compressed_keys,
    "F-CER-02": _missing_authority,
    "A-SIG-01": _attacked("CAM, invalid signature", _with_wrong_key(AttackSender)),
    "A-SIG-02": _attacked("DENM, invalid signature", _with_wrong_key(DenmSender)),
    "A-SIG-03": _attacked("CAM, no signature", lambda bench: bench.station(secured=False)),
    "A-SIG-04": _overload,
    "A-SIG-05": _replayed,
    "A-SIG-06": _attacked(
        "CAM, old timestamp",
        lambda bench: bench.station(clock=lambda: bench.clock() - round(_OLD_S * 1e6), kind=AttackSender),
    ),
    "A-CER-01": _untrusted_chains,
    "A-CER-03": _attacked(
        "CAM, expired ticket",
        lambda bench: bench.station(begin_s=-2 * _EXPIRED_S, duration_s=_EXPIRED_S, kind=AttackSender),
    ),
}
