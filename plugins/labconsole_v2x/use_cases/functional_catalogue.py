"""The functional use cases (Tables 2.6, 2.7, 2.10, 2.12, 2.14, 2.15, 2.17) and the underlying functions (2.3.1)."""

from __future__ import annotations

from labconsole_v2x.use_cases.expectations import ACCEPTED, Decisions, Figure, Packets
from labconsole_v2x.use_cases.use_case import ReferencePoint, UseCase

_FUNCTIONS, _NONE = ReferencePoint.FUNCTIONS, ReferencePoint.NONE
_RP1, _RP2, _RP3, _RP4, _RP5 = (ReferencePoint[f"RP{number}"] for number in range(1, 6))
OK = "ok"
_CHANGED = (
    Figure("identifiers common to before and after", most=0),
    Figure("first packet after the change carries the certificate", least=1, most=1),
)


def _function(number: int, title: str, step: str, least: int) -> UseCase:
    criterion = Decisions(title, (OK,), least)
    return UseCase(f"FUN-{number:02}", title, _FUNCTIONS, mandatory=True, steps=(step,), criteria=(criterion,))


FUNCTIONS = (
    _function(1, "Create CAM and DENM", "10 CAMs and 10 DENMs are created with a security header.", 20),
    _function(2, "Serialise and deserialise", "10 CAMs and 10 DENMs are encoded, decoded, and compared.", 20),
    _function(3, "Create a symmetric key", "10 AES-128 keys are created: all differ, and each encrypts.", 10),
    _function(4, "Create a key pair", "A key pair is created on each curve of IEEE 1609.2; each signs.", 4),
    _function(
        5, "Import a remote key", "Public keys are loaded from certificates; one that is not a point is refused.", 5
    ),
    _function(6, "Export a public key", "Public keys are written in a certificate and as PEM, and read again.", 8),
    _function(7, "Sign a block of data", "Blocks of 0 to 10,000 octets are signed.", 5),
    _function(8, "Verify a signature", "Signatures are verified; with one bit changed, each is refused.", 10),
    _function(9, "Cipher a block of data", "Blocks are encrypted to a certificate and under a shared key.", 10),
    _function(10, "Decipher data", "They are decrypted; by another key, or with one bit changed, they are not.", 20),
)
"""The underlying functions, which the source tested one by one and does not report."""

FUNCTIONAL = (
    UseCase(
        "F-SIG-01",
        "Signature of CAM in cooperative safety applications, e.g. RHS",
        _RP1,
        mandatory=True,
        steps=(
            "A station signs 20 CAMs with its ticket, at 10 a second of their times.",
            "A receiver that trusts the root CA and knows the AA verifies them.",
        ),
        criteria=(Packets("CAM"),),
        test_purposes=(
            "TC_SEC_ITSS_SND_CAM_01_BV",
            "TC_SEC_ITSS_SND_CAM_02_BV",
            "TC_SEC_ITSS_SND_CAM_03_BV",
            "TC_SEC_ITSS_SND_CAM_04_BV",
            "TC_SEC_ITSS_RCV_CAM_01_BV",
            "TC_SEC_ITSS_RCV_CAM_02_BV",
        ),
    ),
    UseCase(
        "F-SIG-02",
        "Signature of DENM messages",
        _RP1,
        mandatory=False,
        steps=("A station signs 20 DENMs with its ticket, as GeoBroadcast.", "A receiver verifies them."),
        criteria=(Packets("DENM"),),
        test_purposes=(
            "TC_SEC_ITSS_SND_DENM_01_BV",
            "TC_SEC_ITSS_SND_DENM_02_BV",
            "TC_SEC_ITSS_SND_DENM_03_BV",
            "TC_SEC_ITSS_RCV_DENM_01_BV",
        ),
    ),
    UseCase(
        "F-SIG-03",
        "CAM/DENM Processing at very high rate",
        _RP1,
        mandatory=True,
        steps=(
            "15 stations send CAMs at the rate of the run (by default 1,500 a second) for two seconds, open loop.",
            "One receiver verifies them as they come.",
        ),
        criteria=(
            Packets("CAM at a high rate", least=200, share=0.99),
            Figure("rate sent, of the rate asked for", least=0.95),
            Figure("rate processed, of the rate sent", least=0.95),
        ),
    ),
    UseCase(
        "F-SIG-04",
        "Signing a CAM message with its-aid-ssp compatible with the current pseudonym",
        _RP1,
        mandatory=True,
        steps=(
            "The current ticket permits the emergency container.",
            "The station signs 20 CAMs of an emergency vehicle.",
        ),
        criteria=(
            Decisions("station: choice of the ticket", ("the current ticket",), 20),
            Packets("CAM of an emergency vehicle"),
        ),
    ),
    UseCase(
        "F-SIG-05",
        "Signing a CAM message with its-aid-ssp not compatible with the current pseudonym",
        _RP1,
        mandatory=True,
        steps=(
            "The current ticket does not permit the emergency container, another one of the pool does.",
            "The station changes its identity to that one, and signs 20 CAMs of an emergency vehicle.",
            "One more is signed with the first ticket, against the rule.",
        ),
        criteria=(
            Decisions("station: choice of the ticket", ("another ticket", "the current ticket"), 20),
            Packets("CAM of an emergency vehicle"),
            Packets("CAM beyond its ticket", ("permission for the content missing",), 1),
        ),
        test_purposes=("TC_SEC_ITSS_RCV_CAM_01_BO",),
    ),
    UseCase(
        "F-SIG-06",
        "Signing a CAM message with its-aid-ssp not compatible with any of the pseudonyms",
        _RP1,
        mandatory=True,
        steps=(
            "No ticket of the pool permits the emergency container.",
            "The station is asked for 20 CAMs of an emergency vehicle.",
            "One is signed all the same, against the rule.",
        ),
        criteria=(
            Decisions("station: choice of the ticket", ("no ticket",), 20),
            Packets("CAM beyond its ticket", ("permission for the content missing",), 1),
        ),
    ),
    UseCase(
        "F-SIG-07",
        "Signing a CAM message with its-aid-ssp not compatible with the long term certificate",
        _RP1,
        mandatory=True,
        steps=(
            "The station, which is registered for plain CAMs, asks the AA for a ticket with the emergency container.",
            "The AA asks the EA, which knows what the holder of the enrolment credential may do.",
            "It asks for a ticket for plain CAMs.",
        ),
        criteria=(
            Decisions("EA: ticket beyond the credential", ("deniedpermissions",)),
            Decisions("AA: ticket beyond the credential", ("its-aa-deniedpermissions", "deniedpermissions")),
            Decisions("AA: ticket within the credential", (OK,)),
            Figure("tickets beyond the credential", most=0),
        ),
        interpretation="The long term certificate is the enrolment credential: what it does not cover, no ticket gets.",
    ),
    UseCase(
        "F-CER-01",
        "Issuing a LT certificate",
        _RP3,
        mandatory=True,
        steps=(
            "A registered station sends an enrolment request to the EA over HTTP (TS 102 941, 6.2.3.2).",
            "It checks response and enrolment credential, and enrols a second time.",
        ),
        criteria=(
            Decisions("EA: enrolment", (OK,), 2),
            Figure("credentials valid under the root CA", least=2),
            Figure("octets of the itsId in messages as sent", most=0),
        ),
        test_purposes=("SECPKI_ITSS_ENR_01_BV", "SECPKI_ITSS_ENR_02_BV"),
    ),
    UseCase(
        "F-CER-02",
        "PCA certificate missing - Pseudonym certificate cannot be verified",
        _RP1,
        mandatory=True,
        steps=(
            "A receiver knows the root CA only; a station sends CAMs, the first with its ticket.",
            "The receiver asks for the AA's certificate in its own CAM (inlineP2pcdRequest).",
            "The station answers in its next CAM (requestedCertificate), and sends 20 more.",
        ),
        criteria=(
            Packets("CAM before the AA is known", ("unknown issuer", "unknown signer", ACCEPTED), 1),
            Figure("CAMs of the receiver that ask for the AA", least=1),
            Packets("CAM after the AA is known"),
            Figure("packets accepted before the AA was known", most=0),
        ),
    ),
    UseCase(
        "F-CER-04",
        "PCA requests an authorization from LTCA for providing new pseudonyms reloading to a requesting ITS-S station",
        _RP5,
        mandatory=True,
        steps=(
            "A station asks the AA for 5 tickets over HTTP; the AA asks the EA for each (TS 102 941, 6.2.3.3 and 4).",
            "What each authority has decrypted is searched for what it must not see.",
        ),
        criteria=(
            Decisions("EA: authorization validation", (OK,), 5),
            Decisions("AA: authorization", (OK,), 5),
            Figure("tickets valid under the root CA", least=5),
            Figure("enrolment credential in what the AA has read", most=0),
            Figure("keys of tickets in what the EA has read", most=0),
        ),
        test_purposes=("SECPKI_EA_AUTHVAL_RCV_01_BV", "SECPKI_EA_AUTHVAL_06_BV"),
    ),
    UseCase(
        "F-PSN-01",
        "Pseudonym Change on request or at system startup (OBU)",
        _RP1,
        mandatory=True,
        steps=(
            "A station sends 25 CAMs, changes its identity on request, and sends 20 more.",
            "The identifiers of all layers before and after are compared. The change at start-up is F-PSN-04.",
        ),
        criteria=(Packets("CAM before the change"), Packets("CAM after the change"), *_CHANGED),
    ),
    UseCase(
        "F-PSN-02",
        "Pseudonym Certificate Refill",
        _RP2,
        mandatory=True,
        steps=(
            "A station's pool is below its low-water mark.",
            "It gets tickets from the AA over HTTP until the pool is full, and sends a CAM with each.",
        ),
        criteria=(
            Decisions("AA: authorization", (OK,), 20),
            Figure("tickets valid under the root CA", least=20),
            Figure("tickets missing in the pool", most=0),
            Packets("CAM with a new ticket"),
        ),
        test_purposes=("SECPKI_ITSS_AUTH_REP_03_BV",),
    ),
    UseCase(
        "F-PSN-03",
        "Lock pseudonym change",
        _RP1,
        mandatory=False,
        steps=(
            "A station locks its identity, as while it sends a DENM; a change that is asked for waits.",
            "It sends 25 CAMs, unlocks, and sends 20 more.",
        ),
        criteria=(
            Decisions("station: change while locked", ("postponed",)),
            Figure("tickets before the change", least=1, most=1),
            Packets("CAM before the change"),
            Packets("CAM after the change"),
            *_CHANGED,
        ),
    ),
    UseCase(
        "F-PSN-04",
        "Pseudonym Change at system startup",
        _RP1,
        mandatory=False,
        steps=("A station sends 25 CAMs, is started again with its pool, and sends 20 more.",),
        criteria=(Packets("CAM before the change"), Packets("CAM after the change"), *_CHANGED),
    ),
    UseCase(
        "F-PSN-05",
        "Pseudonym Certificate Refill via a RSU",
        _RP1,
        mandatory=True,
        steps=(
            "A station without Internet sends its requests to an RSU, in packets.",
            "The RSU posts them to the AA, and returns the responses in packets.",
            "The station sends a CAM with each ticket.",
        ),
        criteria=(
            Decisions("AA: authorization", (OK,), 5),
            Figure("tickets valid under the root CA", least=5),
            Figure("keys of tickets in what the RSU has carried", most=0),
            Packets("CAM with a new ticket", least=5),
        ),
    ),
    UseCase(
        "F-SNS-01",
        "Usage of other signed safety messages in application",
        _RP1,
        mandatory=False,
        steps=("An RSU signs 20 SPATEM by the generic profile (TS 103 097, 7.1.3).", "A receiver verifies them."),
        criteria=(Packets("SPATEM"), Packets("SPATEM of a car", ("ITS-AID not among the ticket's permissions",), 1)),
        interpretation="The other message is SPATEM; its content is not decoded.",
        test_purposes=(
            "TC_SEC_ITSS_SND_GENMSG_01_BV",
            "TC_SEC_ITSS_SND_GENMSG_02_BV",
            "TC_SEC_ITSS_SND_GENMSG_03_BV",
            "TC_SEC_ITSS_SND_GENMSG_04_BV",
            "TC_SEC_ITSS_SND_GENMSG_05_BV",
            "TC_SEC_ITSS_SND_GENMSG_06_BV",
            "TC_SEC_ITSS_SND_GENMSG_07_BV",
            "TC_SEC_ITSS_SND_GENMSG_08_BV",
        ),
    ),
    UseCase(
        "F-SNS-02",
        "Usage of signed message for service advertisement from a RSU, e.g. SAM",
        _RP1,
        mandatory=False,
        steps=("An RSU signs 20 service announcements (SAM) by the generic profile.", "A receiver verifies them."),
        criteria=(
            Packets("service announcement"),
            Packets("service announcement of a car", ("ITS-AID not among the ticket's permissions",), 1),
        ),
        test_purposes=("TC_SEC_ITSS_SND_GENMSG_01_BV",),
    ),
    UseCase(
        "F-SNS-03",
        "Usage of pseudonym certificates with compressed public keys",
        _RP1,
        mandatory=False,
        steps=(
            "A station signs 20 CAMs with a ticket whose key is a compressed point, another one with both coordinates.",
            "A receiver verifies both.",
        ),
        criteria=(
            Packets("CAM, compressed key"),
            Packets("CAM, uncompressed key"),
            Figure("tickets whose key is compressed", least=1),
        ),
    ),
    UseCase(
        "F-ENC-01",
        "Encrypted sending of Traffic Information to TCC",
        _RP1,
        mandatory=False,
        steps=(
            "A station signs traffic information, encrypts it to the centre's certificate, and sends it by radio.",
            "The centre's RSU decrypts and verifies it, and confirms it by radio; another station tries to decrypt it.",
        ),
        criteria=(
            Decisions("centre: traffic information", (ACCEPTED,), 20),
            Decisions("another station: traffic information", ("cannot be decrypted",), 20),
            Figure("reports that verify again", least=20),
            Figure("plaintexts found in what was sent", most=0),
        ),
        interpretation="Table 2.7 has F-ENC-01 on RP1, with the title of F-ENC-02: the same over the radio, to an RSU.",
    ),
    UseCase(
        "F-ENC-02",
        "Encrypted sending of Traffic Information to TCC",
        _RP4,
        mandatory=False,
        steps=(
            "A station signs traffic information, encrypts it to the centre's certificate, and posts it over HTTP.",
            "The centre decrypts and verifies it; another station tries to.",
        ),
        criteria=(
            Decisions("centre: traffic information", (ACCEPTED,), 20),
            Decisions("another station: traffic information", ("cannot be decrypted",), 20),
            Figure("reports that verify again", least=20),
            Figure("plaintexts found in what was sent", most=0),
        ),
    ),
    UseCase(
        "F-CON-01",
        "Plausible content is accepted",
        _NONE,
        mandatory=False,
        steps=("12 stations drive for 10 s of their clock, with errors as satellite positions have them.",),
        criteria=(Packets("CAM of a genuine station", least=1000, share=0.999),),
        interpretation="The source gives a code only: here the counterpart of A-CON-01, without false alarms.",
    ),
    UseCase(
        "F-IVS-01",
        "Authentic data of the vehicle's own network",
        _NONE,
        mandatory=False,
        steps=(
            "Sensors send position and motion over the in-vehicle network, each frame with a MAC and a counter.",
            "The station creates 20 CAMs from them.",
        ),
        criteria=(
            Decisions("vehicle data: frame", (ACCEPTED,), 20),
            Packets("CAM from vehicle data"),
            Figure("CAMs whose position is not that of the sensors", most=0),
        ),
        interpretation=(
            "The source gives a code only. Its glossary has EVITA's Entity Authentication Module, by which components "
            "of a vehicle are authenticated."
        ),
    ),
)
"""The functional use cases by their codes."""
