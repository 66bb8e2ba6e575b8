"""The attack use cases (Tables 2.1 to 2.5, 2.8, 2.9, 2.11, 2.13, 2.16, 2.17): on a receiver, and on the PKI."""

from __future__ import annotations

from labconsole_v2x.use_cases.expectations import ACCEPTED, Decisions, Figure, Packets
from labconsole_v2x.use_cases.use_case import ReferencePoint, UseCase

_NONE = ReferencePoint.NONE
_RP1, _RP2, _RP3, _RP5 = (ReferencePoint[name] for name in ("RP1", "RP2", "RP3", "RP5"))
_BENIGN = Packets("CAM of a benign station")
_HOLDS_TICKET = "Sends on the channel, and has a valid ticket of its own."

ATTACKS = (
    UseCase(
        "A-SIG-01",
        "Send CAMs with invalid signatures",
        _RP1,
        mandatory=True,
        capability=_HOLDS_TICKET,
        steps=(
            "An attacker sends 20 CAMs signed with another key than that of its ticket, a benign station 20 good ones.",
        ),
        criteria=(Packets("CAM, invalid signature", ("signature invalid",)), _BENIGN),
        test_purposes=("TC_SEC_ITSS_RCV_CAM_08_BO",),
    ),
    UseCase(
        "A-SIG-02",
        "Using invalid signatures in DENMs",
        _RP1,
        mandatory=False,
        capability=_HOLDS_TICKET,
        steps=("As A-SIG-01, with DENMs.",),
        criteria=(Packets("DENM, invalid signature", ("signature invalid",)), _BENIGN),
        test_purposes=("TC_SEC_ITSS_RCV_DENM_09_BO",),
    ),
    UseCase(
        "A-SIG-03",
        "Send CAMs without signature",
        _RP1,
        mandatory=True,
        capability="Sends on the channel; needs no ticket.",
        steps=("An attacker sends 20 CAMs without security header, a benign station 20 good ones.",),
        criteria=(Packets("CAM, no signature", ("not secured",)), _BENIGN),
    ),
    UseCase(
        "A-SIG-04",
        "DoS Overload Attack",
        _RP1,
        mandatory=True,
        capability="Sends on the channel at a higher rate than stations may, and has a valid ticket of its own.",
        steps=(
            "Four attackers send CAMs with invalid signatures at 100 a second each, five benign stations 10 a second "
            "each, for two seconds; at a High rate below 400 a second the attackers send that many, for longer.",
            "Where this computer sends CAMs more than a second late, the case counts as not tested.",
        ),
        criteria=(
            Packets("CAM, invalid signature", ("signature invalid", "receiver queue full"), 400),
            Packets("CAM of a benign station", least=50, share=0.99),
        ),
    ),
    UseCase(
        "A-SIG-05",
        "Time adjustment / replay attacks",
        _RP1,
        mandatory=False,
        capability="Hears and sends on the channel; needs no ticket.",
        steps=(
            "20 good CAMs are sent again at once, and after 3 s of the receiver's clock.",
            "20 are sent again with a newer generation time in their header.",
        ),
        criteria=(
            _BENIGN,
            Packets("CAM sent again at once", ("duplicate",)),
            Packets("CAM sent again late", ("generation time too old",)),
            Packets("CAM with adjusted time", ("signature invalid",)),
        ),
    ),
    UseCase(
        "A-SIG-06",
        "Send CAMs with old timestamps",
        _RP1,
        mandatory=True,
        capability=_HOLDS_TICKET,
        steps=("An attacker sends 20 rightly signed CAMs whose times are 10 s old, a benign station 20 good ones.",),
        criteria=(Packets("CAM, old timestamp", ("generation time too old",)), _BENIGN),
    ),
    UseCase(
        "A-CER-01",
        "Send CAMs signed under a chain that no trusted root leads to",
        _NONE,
        mandatory=True,
        capability="Runs a root CA and AA of its own, which no station trusts, and sends on the channel.",
        steps=(
            "20 CAMs are signed with a ticket of the attacker's AA, 20 with one of an AA that pretends to be under the "
            "trusted root.",
        ),
        criteria=(
            Packets("CAM under another root", ("unknown issuer", "unknown signer")),
            Packets("CAM under a forged AA", ("unknown issuer", "unknown signer", "chain invalid")),
            _BENIGN,
        ),
        interpretation="The source gives a code and a result only: certificates of a chain that is not trusted.",
    ),
    UseCase(
        "A-CER-03",
        "Send CAMs signed with expired certificates",
        _RP1,
        mandatory=True,
        capability="Has a ticket that has expired, and its key.",
        steps=(
            "An attacker signs 20 CAMs with a ticket that expired half an hour ago, a benign station 20 good ones.",
        ),
        criteria=(Packets("CAM, expired ticket", ("ticket expired",)), _BENIGN),
    ),
    UseCase(
        "A-CER-04",
        "Attacks on RCA",
        _RP5,
        mandatory=False,
        capability=(
            "Changes what stations get from the distribution centre, reaches the root CA, hears requests, and has the "
            "keys of a revoked AA."
        ),
        steps=(
            "A station gets CTL and CRL: forged by another key, signed by an AA, expired, older than the last ones.",
            "The root CA revokes the AA; its tickets are used all the same.",
            "The distribution centre gets 200 malformed requests, then a right one.",
            "The root CA gets requests for an authority's certificate: of a key that it has not accepted, with a wrong "
            "proof of possession, for more permissions, an old one, one signed by the revoked AA, one sent again; for "
            "the next certificate, signed with another key, and with a certificate that was replaced.",
            "It gets 200 malformed requests, then a right one.",
        ),
        criteria=(
            Decisions("station: right lists", (ACCEPTED,), 2),
            Decisions("station: forged CTL", ("signature invalid",)),
            Decisions("station: forged CRL", ("signature invalid",)),
            Decisions("station: CTL of an AA", ("wrong signer",)),
            Decisions("station: older CTL", ("older than the list applied",)),
            Decisions("station: older CRL", ("older than the list applied",)),
            Decisions("station: expired CTL", ("expired",)),
            Decisions("station: CRL that revokes the AA", (ACCEPTED,)),
            Packets("CAM before the revocation", least=5),
            Packets("CAM after the revocation", ("certificate revoked",), 5),
            Decisions("DC: malformed request", ("no such list",), 200),
            Decisions("DC: right request after the flood", ("answered",)),
            Decisions("RCA: right request", ("ok",)),
            Decisions("RCA: replayed request", ("deniedrequest",)),
            Decisions("RCA: key that was not accepted", ("unknownkey",)),
            Decisions("RCA: wrong proof of possession", ("invalidsignature",)),
            Decisions("RCA: more permissions", ("deniedpermissions",)),
            Decisions("RCA: old request", ("deniedrequest",)),
            Decisions("RCA: certificate of a revoked AA", ("revoked",)),
            Decisions("RCA: next certificate, signed with another key", ("invalidsignature",)),
            Decisions("RCA: right request for the next certificate", ("ok",)),
            Decisions("RCA: replaced certificate", ("unknowncertificate",)),
            Decisions("RCA: malformed request", ("cantparse", "invalidsignature", "invalidkeys", "deniedrequest"), 200),
            Decisions("RCA: right request after the flood", ("ok",)),
        ),
        interpretation="Over a network: what the root CA signs (CTL and CRL), and the requests of authorities to it.",
        test_purposes=("SECPKI_ITSS_CTL_05_BV",),
    ),
    UseCase(
        "A-CER-05",
        "Attacks on LTCA",
        _RP3,
        mandatory=False,
        capability="Reaches the EA over the network, hears requests, and has keys of its own.",
        steps=(
            "The EA gets: a request sent again, a wrong proof of possession, the canonical key of another station, an "
            "unregistered station, permissions that no credential has, an old request.",
            "It gets 200 malformed requests, then a right one.",
        ),
        criteria=(
            Decisions("EA: right request", ("ok",)),
            Decisions("EA: replayed request", ("deniedrequest",)),
            Decisions("EA: wrong proof of possession", ("invalidsignature",)),
            Decisions("EA: key of another station", ("invalidsignature",)),
            Decisions("EA: unregistered station", ("unknownits",)),
            Decisions("EA: more permissions", ("deniedpermissions",)),
            Decisions("EA: old request", ("deniedrequest",)),
            Decisions("EA: malformed request", ("refused",), 200),
            Decisions("EA: right request after the flood", ("ok",)),
        ),
    ),
    UseCase(
        "A-CER-06",
        "Attacks on PCA",
        _RP2,
        mandatory=False,
        capability="Reaches the AA over the network, hears requests, and has an enrolment credential of its own.",
        steps=(
            "The AA gets: a request sent again, a wrong proof of possession, keys that do not fit the keyTag, a "
            "credential of another EA, a withdrawn credential, permissions beyond those registered, an old request.",
            "It gets 200 malformed requests, then a right one.",
        ),
        criteria=(
            Decisions("AA: right request", ("ok",)),
            Decisions("AA: replayed request", ("its-aa-outofsyncrequest",)),
            Decisions("AA: wrong proof of possession", ("invalidsignature",)),
            Decisions("AA: keys that do not fit", ("its-aa-keysdontmatch",)),
            Decisions("AA: credential of another EA", ("its-aa-unknownea", "unknownits")),
            Decisions("AA: withdrawn credential", ("unknownits",)),
            Decisions("AA: more permissions", ("deniedpermissions",)),
            Decisions("AA: old request", ("its-aa-outofsyncrequest",)),
            Decisions("AA: malformed request", ("refused",), 200),
            Decisions("AA: right request after the flood", ("ok",)),
        ),
    ),
    UseCase(
        "A-CON-01",
        "Sending correctly signed messages with invalid content",
        _RP1,
        mandatory=False,
        capability=_HOLDS_TICKET,
        steps=(
            "12 stations drive for 10 s of their clock, and for 10 s more with 6 attackers, which jump, claim speeds, "
            "and use the station ID of others.",
            "The receiver checks the plausibility of each accepted CAM.",
        ),
        criteria=(
            Packets("implausible CAM", ("implausible content",), least=200, share=0.9, some_accepted=True),
            Packets("CAM of a genuine station", least=1000, share=0.999),
            Figure("attackers detected within a second", least=100, unit="%"),
        ),
    ),
    UseCase(
        "A-PSN-01",
        "Attacker trying to identify pseudonym change",
        _RP1,
        mandatory=False,
        capability="Hears the whole channel and keeps all packets; sends nothing.",
        steps=(
            "10 stations change their identities at the same time.",
            "A tracker links identities by equal identifiers, and by where a station would be.",
            "The same with one layer left unchanged, for each layer.",
        ),
        criteria=(
            Figure("changes linked by an identifier", most=0, unit="%"),
            Figure("changes linked by an identifier, one left unchanged", least=100, unit="%"),
            Figure("changes linked by motion", unit="%"),
        ),
    ),
    UseCase(
        "A-IVS-01",
        "Forged data of the vehicle's own network",
        _NONE,
        mandatory=False,
        capability="Sends and hears on the in-vehicle network; has no key.",
        steps=(
            "Frames are forged, changed, sent again, and sent under an unknown data identifier.",
            "The station is asked for CAMs.",
        ),
        criteria=(
            Decisions("vehicle data: forged frame", ("MAC invalid",), 20),
            Decisions("vehicle data: changed frame", ("MAC invalid",), 20),
            Decisions("vehicle data: replayed frame", ("freshness counter not above the last one",), 20),
            Decisions("vehicle data: unknown data identifier", ("unknown data id",), 20),
            Decisions("station: CAM without authentic data", ("not created",), 20),
        ),
        interpretation="The source gives a code only: the attack on F-IVS-01.",
    ),
)
"""The attack use cases by their codes."""
