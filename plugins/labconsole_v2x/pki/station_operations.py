"""`labconsole v2x register`, `enrol` and `authorize`: a station's keys and certificates in a folder, as operations."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from labconsole.errors import UserError
from labconsole.model.operation import HomePath, Operation, OperationContext, Result, TextTable
from labconsole.model.parameters import Parameters, parameter
from labconsole.safe_text import shown

if TYPE_CHECKING:
    from labconsole_v2x.pki.authorization_authority import RemoteAuthority
    from labconsole_v2x.pki.key_folders import KeyFolder
    from labconsole_v2x.pki.station_requests import CertifiedKey
    from labconsole_v2x.security.structures import Certificate, Permission

_CANONICAL, _CREDENTIAL = "canonical", "credential"
_STATION = "Folder of the station"


class SentMessages(StrEnum):
    """The messages that a ticket permits to send."""

    BOTH = "cam-denm"
    CAM = "cam"
    DENM = "denm"

    @property
    def permissions(self) -> tuple[Permission, ...]:
        """The permissions of a ticket."""
        from labconsole_v2x.security.issuing import TICKET_PERMISSIONS  # imported late, as all of cryptography

        cam, denm = TICKET_PERMISSIONS
        return {SentMessages.BOTH: (cam, denm), SentMessages.CAM: (cam,), SentMessages.DENM: (denm,)}[self]


_MESSAGES = {
    SentMessages.BOTH.value: "CAM and DENM",
    SentMessages.CAM.value: "CAM only",
    SentMessages.DENM.value: "DENM only",
}


def _station_id(folder: Path) -> bytes:
    """The itsId: the name of the station's folder. Raises UserError."""
    from labconsole_v2x.pki.enrolment_messages import MOST_ITS_ID

    name = folder.absolute().name
    its_id = name.encode(errors="replace")
    if not name.isprintable() or not 0 < len(its_id) <= MOST_ITS_ID:
        raise UserError(
            f"{shown(str(folder))} cannot name a station: choose a folder's name of 1 to {MOST_ITS_ID} octets."
        )
    return its_id


class RegisterParameters(Parameters):
    """The station, and the lab whose EA shall know it."""

    station: HomePath = parameter(
        _STATION,
        "Folder for the station's keys and certificates; its name is the itsId",
        kind="folder",
        positional=True,
        metavar="STATION",
    )
    lab: HomePath | None = parameter(
        "Folder of the lab",
        "Folder of the lab's authorities; not given: only the key is created, for the EA of another lab",
        default=None,
        kind="folder",
    )
    messages: SentMessages = parameter(
        "Messages", "The most that the station's tickets may permit", default=SentMessages.BOTH, labels=_MESSAGES
    )


class RegisterStation(Operation[RegisterParameters]):
    """Registers a station at a lab's EA, as its manufacturer does."""

    name: ClassVar[str] = "v2x.register"
    title: ClassVar[str] = "Register a station"
    description: ClassVar[str] = (
        "Creates the canonical key of a station, and registers it with its permissions at the EA of a lab, as a "
        "manufacturer does. The key stays if it exists; its public key is written for the EA of another lab."
    )
    parameters: ClassVar[type[Parameters]] = RegisterParameters

    def run(self, parameters: RegisterParameters, context: OperationContext) -> Result:
        from labconsole_v2x.pki.enrolment_authority import RegisteredStation
        from labconsole_v2x.pki.key_folders import EA, KeyFolder, StationFolder, certificate_file
        from labconsole_v2x.security.keys import SoftwareKey

        its_id, folder, lab = _station_id(parameters.station), KeyFolder(parameters.station), parameters.lab
        if lab is not None and not certificate_file(lab, EA).exists():
            raise UserError(f"{lab} has no EA: create it with labconsole v2x authorities {lab}.")
        if not folder.has_key(_CANONICAL):
            if folder.folder.is_dir() and any(folder.folder.iterdir()):
                raise UserError(f"{folder.folder} has files of others: choose an empty folder, or that of a station.")
            folder.add(_CANONICAL, SoftwareKey.generate())
        key = folder.key(_CANONICAL)
        public_file = folder.write_public_key(_CANONICAL, key)
        sentences = [f"Public key: {public_file}"]
        if lab is None:
            sentences.append("Not registered yet: an EA must have this key before the station can enrol.")
        else:
            station = RegisteredStation(its_id, key.public_key, parameters.messages.permissions)
            StationFolder(lab).add_station(station)
            sentences.insert(0, f"Registered: {its_id.decode()}, {_MESSAGES[parameters.messages.value]}")
        return Result(tuple(sentences), {"its_id": its_id.hex(), "public_key": str(public_file)})


class _RequestParameters(Parameters):
    """The station, its EA and the root that it trusts."""

    station: HomePath = parameter(
        _STATION, "Folder of a registered station", kind="folder", positional=True, metavar="STATION"
    )
    ea_certificate: HomePath = parameter("EA's certificate", "Certificate of the station's EA (COER)", kind="file")
    root: HomePath = parameter("Trusted root", "Certificate of the root CA (COER)", kind="file")


class EnrolParameters(_RequestParameters):
    """The station, and the EA."""

    ea: str = parameter("URL of the EA", "URL of the EA", metavar="URL", default="http://127.0.0.1:8941/")
    renew: bool = parameter(
        "Renew", "Sign the request with the current credential instead of the canonical key", default=False
    )


class Enrol(Operation[EnrolParameters]):
    """Gets an enrolment credential from an EA."""

    name: ClassVar[str] = "v2x.enrol"
    title: ClassVar[str] = "Enrol a station"
    description: ClassVar[str] = (
        "Gets an enrolment credential for a station from an EA (ETSI TS 102 941) and stores it in the station's "
        "folder, in place of an older one, which the EA withdraws."
    )
    parameters: ClassVar[type[Parameters]] = EnrolParameters

    def run(self, parameters: EnrolParameters, context: OperationContext) -> Result:
        from labconsole_v2x.pki.http_transport import post
        from labconsole_v2x.pki.key_folders import KeyFolder
        from labconsole_v2x.pki.station_requests import enrol, re_enrol

        folder, its_id = KeyFolder(parameters.station), _station_id(parameters.station)
        if not folder.has_key(_CANONICAL):
            raise UserError(f"{folder.folder} is not the folder of a station: register it first (v2x register).")
        ea, root = _remote(parameters.ea, parameters.ea_certificate), _certificate(parameters.root)
        if parameters.renew:
            credential = re_enrol(_credential(folder), ea, root, post)
        else:
            credential = enrol(its_id, folder.key(_CANONICAL), ea, root, post)
        folder.add(_CREDENTIAL, credential.key, credential.certificate)
        return certificates_result(
            "Enrolled", [credential.certificate], (ea.certificate, root), [folder.certificate_path(_CREDENTIAL)]
        )


class AuthorizeParameters(_RequestParameters):
    """The station, the AA, and the tickets."""

    aa: str = parameter("URL of the AA", "URL of the AA", metavar="URL", default="http://127.0.0.1:8942/")
    aa_certificate: HomePath = parameter("AA's certificate", "Certificate of the AA (COER)", kind="file")
    messages: SentMessages = parameter(
        "Messages", "What the tickets shall permit", default=SentMessages.BOTH, labels=_MESSAGES
    )
    count: int = parameter("Tickets", "How many tickets, a request each", default=1, ge=1, le=100, unit="tickets")


class Authorize(Operation[AuthorizeParameters]):
    """Gets authorization tickets from an AA."""

    name: ClassVar[str] = "v2x.authorize"
    title: ClassVar[str] = "Get authorization tickets"
    description: ClassVar[str] = (
        "Gets authorization tickets for an enrolled station from an AA (ETSI TS 102 941) and stores them in the "
        "station's folder. The AA asks the EA, and does not learn which station it is."
    )
    parameters: ClassVar[type[Parameters]] = AuthorizeParameters

    def run(self, parameters: AuthorizeParameters, context: OperationContext) -> Result:
        from labconsole_v2x.pki.http_transport import post
        from labconsole_v2x.pki.key_folders import KeyFolder
        from labconsole_v2x.pki.station_requests import authorize

        folder = KeyFolder(parameters.station)
        aa, root = _remote(parameters.aa, parameters.aa_certificate), _certificate(parameters.root)
        ea = _certificate(parameters.ea_certificate)
        credential, permissions = _credential(folder), parameters.messages.permissions
        tickets, files = [], []
        for number in range(parameters.count):
            if context.stop_requested:
                break
            ticket = authorize(credential, permissions, ea, aa, root, post)
            name = f"ticket-{ticket.certificate.hashed_id8.hex()}"
            folder.add(name, ticket.key, ticket.certificate)
            tickets.append(ticket.certificate)
            files.append(folder.certificate_path(name))
            context.progress(number + 1, parameters.count)
        return certificates_result("Authorized", tickets, (aa.certificate, root), files)


def _credential(folder: KeyFolder) -> CertifiedKey:
    """The station's enrolment credential. Raises UserError."""
    if not folder.has_key(_CREDENTIAL):
        raise UserError(f"{folder.folder} has no enrolment credential: enrol the station first (v2x enrol).")
    return folder.certified(_CREDENTIAL)


def _certificate(path: Path) -> Certificate:
    from labconsole_v2x.inspection.capture_certificates import read_certificate

    return read_certificate(path)


def _remote(url: str, certificate: Path) -> RemoteAuthority:
    """An authority at a URL. Raises UserError."""
    from labconsole_v2x.pki.authorization_authority import RemoteAuthority
    from labconsole_v2x.pki.http_transport import checked_url

    return RemoteAuthority(checked_url(url), _certificate(certificate))


def certificates_result(
    done: str, certificates: list[Certificate], issuers: tuple[Certificate, ...], files: list[Path]
) -> Result:
    """The certificates that were stored, each with its chain, validity and file."""
    from labconsole_v2x.inspection.capture_certificates import certificate_name

    chain = " - ".join(certificate_name(one) for one in issuers)
    rows = []
    for certificate, file in zip(certificates, files, strict=True):
        psids = ", ".join(str(one.psid) for one in certificate.permissions)
        days = (certificate.validity.end_s - certificate.validity.start_s) // 86_400
        rows.append((certificate.hashed_id8.hex(), chain, psids, f"{days} days", str(file)))
    table = TextTable(("HashedId8", "Issued by", "ITS-AIDs", "Valid for", "File"), tuple(rows))
    data = [{"hashed_id8": row[0], "file": row[-1]} for row in rows]
    return Result((f"{done}: {len(rows)} stored.", table), {"certificates": data})
