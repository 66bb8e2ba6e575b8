"""Each use case fails where a unit under test is broken, and its reason names the fault."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from labconsole_v2x.pki.station_requests import authorization_request
from labconsole_v2x.security.backends import SoftwareSymmetricKey
from labconsole_v2x.security.verification import Reason
from labconsole_v2x.stations.receiving import IMPLAUSIBLE
from labconsole_v2x.stations.sending import Layer
from labconsole_v2x.use_cases.cases.bench import Parts
from labconsole_v2x.use_cases.cases.case_runs import RUNS, run_case
from labconsole_v2x.use_cases.catalogue import CODES
from labconsole_v2x.use_cases.evidence import grouped, read_lines
from labconsole_v2x.use_cases.judging import FAILED, judge
from tests.labconsole_v2x.use_cases import broken_authorities
from tests.labconsole_v2x.use_cases import broken_parts as broken
from tests.labconsole_v2x.use_cases.case_lab import SETTINGS, lines_of

_PLUGIN = "labconsole_v2x."
_FUNCTIONS = "use_cases.cases.function_cases."


@dataclass(frozen=True)
class Fault:
    """A broken unit, by `parts` or in place of a function of the plugin, and how a verdict names the fault."""

    name: str
    reason: str
    parts: Parts = Parts()  # noqa: RUF009 - it is frozen
    instead: Mapping[str, Any] = field(default_factory=dict)


def receiver(name: str, check: Any, reason: str) -> Fault:
    """A broken receiver."""
    return Fault(name, reason, Parts(check=check))


def says_otherwise(label: str, verdict: str, right: str) -> str:
    """The reason where a receiver's verdict is not the right one."""
    return f"^{re.escape(label)}: a receiver's verdict was {verdict}, a second verification says {right}"


def accepts(label: str, reason: str) -> Fault:
    """A receiver without a check."""
    return receiver(f"does not check: {reason}", broken.ignoring(reason), says_otherwise(label, "accepted", reason))


def function(name: str, code: str, instead: Any) -> Fault:
    """A broken underlying function."""
    return Fault(name, r"\d+ x wrong", instead={_FUNCTIONS + code: instead})


_SHORT = {"use_cases.cases.packet_cases._HIGH_RATE_S": 1.0}
_SMALL_FLOOD = {"use_cases.cases.packet_cases._FLOOD_PACKETS": 200}
_FEW_STATIONS = {"use_cases.cases.content_cases._TRACKED": 2}
_SHORT_DRIVE = {"use_cases.cases.content_cases._CONTENT_S": 3.0}
_SHORT_FLOOD = {"use_cases.cases.pki_cases._FLOOD": 20, "use_cases.cases.root_cases._FLOOD": 20}
"""Fewer packets or requests than the criteria ask for: the fault must be among the reasons all the same."""
_SAME_KEY = SoftwareSymmetricKey(bytes(16))
_CHANGED_LAYERS = (Layer.TICKET, Layer.MAC_ADDRESS, Layer.GN_ADDRESS, Layer.STATION_ID, Layer.PATH_HISTORY)
"""The layers that a CAM shows; it has no sequence number."""
_LEFT = tuple(
    Fault(f"leaves the {layer}", "identifiers common to before and after: [1-9]", Parts(sender=broken.leaving(layer)))
    for layer in _CHANGED_LAYERS
)
_NOT_CHANGED = "identifiers common to before and after: [4-9]"
_NO_NEW_TICKET = Fault(
    "does not send the new ticket",
    "^first packet after the change carries the certificate: 0",
    Parts(sender=broken.keeping_distribution),
)
_IN_CLEAR = partial(authorization_request, private=False)
_OF_REPORTS = (
    Fault("sends reports in clear", "Not encrypted data", Parts(traffic_sender=broken.PlaintextSender)),
    Fault(
        "accepts reports with invalid signatures",
        "reports that verify again: 0",
        Parts(centre=broken.CentreOfAnySender, traffic_sender=broken.SenderOfAnotherKey),
    ),
    Fault(
        "accepts no report",
        "centre: traffic information: 20 x unknown signer",
        Parts(centre=broken.CentreOfNoSender),
    ),
)

FAULTS: Mapping[str, tuple[Fault, ...]] = {
    "FUN-01": (Fault("no security header", "20 x wrong", Parts(sender=broken.without_security)),),
    "FUN-02": (function("loses a container", "cam", broken.losing_codec),),
    "FUN-03": (function("always the same key", "generate_symmetric_key", lambda *_: _SAME_KEY),),
    "FUN-04": (function("halves of two pairs", "generate_key", broken.unpaired_key),),
    "FUN-05": (function("no check of points", "key_loader", broken.loading_any_point),),
    "FUN-06": (function("the other y", "compressed_point", broken.mirrored_point),),
    "FUN-07": (Fault("another key", "5 x wrong", instead={"use_cases.cases.bench.generate_key": broken.unpaired_key}),),
    "FUN-08": (function("each signature is valid", "key_loader", broken.accepting_any_signature),),
    "FUN-09": (function("plaintext", "encrypt_with_shared_key", broken.not_encrypting),),
    "FUN-10": (function("no check of the tag", "decrypt_with_shared_key", broken.without_tag),),
    "F-SIG-01": (
        Fault("signs with another key", "signature invalid", Parts(sender=broken.with_another_key)),
        Fault("sends the digest alone", "CAM: 20 sent, 20 unknown signer", Parts(sender=broken.with_digest_alone)),
        receiver("rejects all", broken.rejecting_all, says_otherwise("CAM", "signature invalid", "accepted")),
    ),
    "F-SIG-02": (
        Fault("leaves the location out", "DENM: 20 sent, 20 profile broken", Parts(sender=broken.without_location)),
    ),
    "F-SIG-03": (Fault("is slow", r"rate processed, of the rate sent: 0\.[0-8]", Parts(check=broken.slow), _SHORT),),
    "F-SIG-04": (
        Fault(
            "finds no ticket",
            "choice of the ticket: 20 x no ticket; CAM of an emergency vehicle: 0 sent",
            Parts(pool=broken.PoolOfNoPermission),
        ),
    ),
    "F-SIG-05": (
        Fault(
            "does not read SSPs",
            "CAM of an emergency vehicle: 20 sent, 20 permission for the content missing",
            Parts(pool=broken.PoolOfAnyPermission),
        ),
        accepts("CAM beyond its ticket", Reason.PERMISSION_MISSING),
    ),
    "F-SIG-06": (
        Fault(
            "does not read SSPs",
            "choice of the ticket: 20 x the current ticket",
            Parts(pool=broken.PoolOfAnyPermission),
        ),
        accepts("CAM beyond its ticket", Reason.PERMISSION_MISSING),
    ),
    "F-SIG-07": (
        Fault(
            "EA grants too much",
            "EA: ticket beyond the credential: 1 x ok; .* tickets beyond the credential: 1",
            Parts(enrolment_authority=broken_authorities.GenerousEa),
        ),
        Fault(
            "AA does not ask the EA",
            "EA: ticket beyond the credential: none; AA: ticket beyond the credential: 1 x ok",
            Parts(authorization_authority=broken_authorities.AaWithoutEa),
        ),
    ),
    "F-CER-01": (
        Fault(
            "EA signs with another key",
            "broke off: .* certificate that is not valid .*signature",
            Parts(enrolment_authority=broken_authorities.EaOfAnyKey),
        ),
    ),
    "F-CER-02": (
        Fault("does not ask", "CAMs of the receiver that ask for the AA: 0", Parts(sender=broken.without_requests)),
        Fault(
            "does not answer",
            "CAM after the AA is known: 21 sent, 21 unknown issuer",
            Parts(sender=broken.without_answers),
        ),
        accepts("CAM before the AA is known", Reason.UNKNOWN_ISSUER),
    ),
    "F-CER-04": (
        Fault(
            "station leaks its credential to the AA",
            "^enrolment credential in what the AA has read: 5",
            instead={
                "use_cases.cases.bench_authorities.authorization_request": partial(authorization_request, private=False)
            },
        ),
        Fault(
            "AA does not ask the EA",
            "EA: authorization validation: none",
            Parts(authorization_authority=broken_authorities.AaWithoutEa),
        ),
    ),
    "F-PSN-01": (
        *_LEFT,
        _NO_NEW_TICKET,
        Fault("ignores requests", _NOT_CHANGED, Parts(schedule=broken.DeafSchedule)),
        Fault("has one identity", _NOT_CHANGED, Parts(pool=broken.PoolOfOneIdentity)),
    ),
    "F-PSN-02": (
        Fault("is not filled", "tickets missing in the pool: 1", Parts(pool=broken.PoolNeverFull)),
        Fault(
            "AA ignores the validity asked for",
            "broke off: The pool refuses ticket .*, as it begins later",
            Parts(authorization_authority=broken_authorities.AaOfLateTickets),
        ),
    ),
    "F-PSN-03": (
        Fault(
            "ignores the lock",
            "change while locked: 25 x at once; tickets before the change: [2-5]",
            Parts(schedule=broken.UnlockedSchedule),
        ),
        Fault("forgets the request", _NOT_CHANGED, Parts(schedule=broken.EndlessLock)),
        _NO_NEW_TICKET,
    ),
    "F-PSN-04": (
        Fault("does not change at start-up", _NOT_CHANGED, Parts(schedule=broken.ScheduleWithoutStart)),
        _LEFT[1],
    ),
    "F-PSN-05": (
        Fault("RSU alters responses", "broke off: .* answers no valid response", Parts(relay=broken.AlteringRelay)),
    ),
    "F-SNS-01": (accepts("SPATEM of a car", Reason.UNKNOWN_ITS_AID),),
    "F-SNS-02": (accepts("service announcement of a car", Reason.UNKNOWN_ITS_AID),),
    "F-SNS-03": (
        receiver(
            "reads compressed keys alone",
            broken.reading_compressed_keys_alone,
            says_otherwise("CAM, uncompressed key", "malformed", "accepted"),
        ),
    ),
    "F-ENC-01": (
        *_OF_REPORTS,
        Fault(
            "sends in clear by radio",
            "centre: traffic information: 20 x not encrypted data",
            Parts(traffic_sender=broken.PlaintextRadio),
        ),
    ),
    "F-ENC-02": (
        *_OF_REPORTS,
        Fault(
            "confirms under another key",
            "answers no confirmation of the report",
            Parts(centre=broken.CentreOfAnotherKey),
        ),
    ),
    "F-CON-01": (
        replace(
            receiver(
                "has false alarms",
                broken.alarming,
                says_otherwise("CAM of a genuine station", "implausible content", "accepted"),
            ),
            instead=_SHORT_DRIVE,
        ),
        Fault(
            "sends its speed in km/h",
            r"CAM of a genuine station: 360 sent, .*\d+ implausible content",
            Parts(sender=broken.with_wrong_speed),
            _SHORT_DRIVE,
        ),
    ),
    "F-IVS-01": (
        Fault(
            "gives old positions",
            "CAMs whose position is not that of the sensors: 19",
            Parts(vehicle_data=broken.DataThatStays),
        ),
        Fault("accepts no frame", "vehicle data: frame: 60 x MAC invalid", Parts(vehicle_data=broken.DataOfNoFrame)),
    ),
    "A-SIG-01": (
        accepts("CAM, invalid signature", Reason.SIGNATURE_INVALID),
        receiver(
            "rejects all",
            broken.rejecting_all,
            says_otherwise("CAM of a benign station", "signature invalid", "accepted"),
        ),
    ),
    "A-SIG-02": (accepts("DENM, invalid signature", Reason.SIGNATURE_INVALID),),
    "A-SIG-03": (accepts("CAM, no signature", Reason.UNSECURED),),
    "A-SIG-04": (
        Fault(
            "has no room for benign packets",
            r"CAM of a benign station: 100 sent, .*\d+ receiver queue full",
            Parts(check=broken.overflowing),
            _SMALL_FLOOD,
        ),
    ),
    "A-SIG-05": (
        accepts("CAM sent again at once", Reason.DUPLICATE),
        accepts("CAM sent again late", Reason.TOO_OLD),
        accepts("CAM with adjusted time", Reason.SIGNATURE_INVALID),
    ),
    "A-SIG-06": (accepts("CAM, old timestamp", Reason.TOO_OLD),),
    "A-CER-01": (
        accepts("CAM under another root", Reason.UNKNOWN_ISSUER),
        receiver("accepts all", broken.accepting_all, says_otherwise("CAM under another root", "accepted", "unknown")),
    ),
    "A-CER-03": (accepts("CAM, expired ticket", Reason.EXPIRED),),
    "A-CER-04": (
        Fault(
            "applies older lists",
            "station: older CTL: 1 x accepted",
            Parts(station_trust=broken_authorities.TrustWithoutOrder),
            _SHORT_FLOOD,
        ),
        Fault(
            "does not revoke",
            says_otherwise("CAM after the revocation", "accepted", "certificate revoked"),
            Parts(station_trust=broken_authorities.TrustWithoutRevocation),
            _SHORT_FLOOD,
        ),
        Fault(
            "has any list",
            "DC: malformed request: 20 x answered",
            Parts(distribution_centre=broken_authorities.ObligingCentre),
            _SHORT_FLOOD,
        ),
        Fault(
            "forgets requests",
            "RCA: replayed request: 1 x ok",
            Parts(root_authority=broken_authorities.ForgetfulRca),
            _SHORT_FLOOD,
        ),
        Fault(
            "certifies any key",
            "RCA: key that was not accepted: 1 x ok",
            Parts(root_authority=broken_authorities.ObligingRca),
            _SHORT_FLOOD,
        ),
        Fault(
            "ignores its CRL",
            "RCA: certificate of a revoked AA: 1 x ok",
            Parts(root_authority=broken_authorities.RcaWithoutRevocation),
            _SHORT_FLOOD,
        ),
        Fault(
            "skips proofs of possession",
            "RCA: wrong proof of possession: 1 x ok",
            instead=_SHORT_FLOOD | {"pki.root.root_authority.is_signed_by": lambda *_: True},
        ),
    ),
    "A-CER-05": (
        Fault(
            "forgets requests",
            "EA: replayed request: 1 x ok",
            Parts(enrolment_authority=broken_authorities.ForgetfulEa),
            _SHORT_FLOOD,
        ),
        Fault(
            "ignores the time",
            "EA: old request: 1 x ok",
            Parts(enrolment_authority=broken_authorities.TimelessEa),
            _SHORT_FLOOD,
        ),
        Fault(
            "skips proofs of possession",
            "EA: wrong proof of possession: 1 x ok; EA: key of another station: 1 x ok",
            instead=_SHORT_FLOOD | {"pki.enrolment_authority.is_signed_by": lambda *_: True},
        ),
        Fault(
            "dies of a flood",
            "EA: right request after the flood: 1 x refused",
            Parts(enrolment_authority=broken_authorities.EaThatDiesOfNoise),
            _SHORT_FLOOD,
        ),
    ),
    "A-CER-06": (
        Fault(
            "forgets requests",
            "AA: replayed request: 1 x ok",
            Parts(authorization_authority=broken_authorities.ForgetfulAa),
            _SHORT_FLOOD,
        ),
        Fault(
            "ignores the time",
            "AA: old request: 1 x denied",
            Parts(authorization_authority=broken_authorities.TimelessAa),
            _SHORT_FLOOD,
        ),
        Fault(
            "skips the proof of possession",
            "AA: wrong proof of possession: 1 x ok",
            instead=_SHORT_FLOOD | {"pki.authorization_authority.is_signed_by": lambda *_: True},
        ),
        Fault(
            "does not ask the EA",
            "AA: withdrawn credential: 1 x ok",
            Parts(authorization_authority=broken_authorities.AaWithoutEa),
            _SHORT_FLOOD,
        ),
    ),
    "A-CON-01": (replace(accepts("implausible CAM", IMPLAUSIBLE), instead=_SHORT_DRIVE),),
    "A-PSN-01": (
        *(
            Fault(
                f"leaves the {layer}",
                "changes linked by an identifier: 100 %",
                Parts(sender=broken.leaving(layer)),
                _FEW_STATIONS,
            )
            for layer in Layer
        ),
        Fault(
            "the test does not leave a layer",
            "changes linked by an identifier, one left unchanged: 0 %",
            Parts(sender=broken.changing_all),
            _FEW_STATIONS,
        ),
    ),
    "A-IVS-01": (
        Fault(
            "does not check MACs",
            "vehicle data: forged frame: 60 x accepted; .*CAM without authentic data: 20 x created",
            Parts(vehicle_data=broken.DataWithoutMac),
        ),
        Fault(
            "does not check freshness",
            "vehicle data: replayed frame: 60 x accepted",
            Parts(vehicle_data=broken.DataWithoutFreshness),
        ),
    ),
}


def test_each_case_has_a_broken_part() -> None:
    assert set(FAULTS) == set(RUNS) == set(CODES)


@pytest.mark.parametrize(
    ("code", "fault"),
    [pytest.param(code, one, id=f"{code}: {one.name}") for code, faults in FAULTS.items() for one in faults],
)
def test_broken_part_turns_its_case_to_failed(code: str, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, instead in fault.instead.items():
        monkeypatch.setattr(_PLUGIN + name, instead)
    evidence = run_case(code, SETTINGS, parts=fault.parts)
    monkeypatch.undo()
    judgement = judge(evidence)
    assert judgement.result == FAILED, judgement.reason
    assert re.search(fault.reason, judgement.reason), judgement.reason
    (stored,) = grouped(read_lines(lines_of(evidence.records))).values()
    assert (stored.case, stored.records) == (code, evidence.records), "so that it is judged so, too"
