"""EA and AA of a lab in the test's process, with a clock that the test sets, and all their messages recorded."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from labconsole_v2x.pki.authority import Decision
from labconsole_v2x.pki.authorization_authority import AuthorizationAuthority, RemoteAuthority
from labconsole_v2x.pki.enrolment_authority import EnrolmentAuthority, RegisteredStation
from labconsole_v2x.pki.key_folders import StationFolder
from labconsole_v2x.pki.request_parts import SubjectAttributes
from labconsole_v2x.pki.secured_messages import AuthorityIdentity, SentRequest
from labconsole_v2x.pki.station_requests import CertifiedKey, authorization_request, enrolment_request
from labconsole_v2x.security.issuing import CREDENTIAL_PERMISSIONS, TICKET_PERMISSIONS, LabPki, issue
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.structures import Certificate, Permission, Validity

NOW_S = 720_000_000
NOW_US = NOW_S * 1_000_000
EA_URL, AA_URL = "http://ea.test/", "http://aa.test/"
ITS_ID = b"car-1"
CAM_ONLY = TICKET_PERMISSIONS[:1]
MUTANTS = (
    (int(by_hand),)
    if (by_hand := os.environ.get("LABCONSOLE_MUTATED_REQUESTS"))
    else (500, pytest.param(5000, marks=pytest.mark.nightly))
)
"""How many damaged messages of a kind a test tries: a tenth in CI, all each night, or as many as asked for by hand."""


def lab_pki() -> LabPki:
    """A PKI that is valid since an hour."""
    return LabPki.create(NOW_S - 3600)


@dataclass
class Exchange:
    """A message to an authority and its answer."""

    url: str
    request: bytes
    response: bytes


@dataclass
class PkiLab:
    """The authorities, a registered station that may send CAMs and DENMs, and one that may only send CAMs."""

    folder: Path
    pki: LabPki = field(default_factory=lab_pki)
    now_us: int = NOW_US
    ea_answers: bool = True

    def __post_init__(self) -> None:
        self.decisions: list[Decision] = []
        self.exchanges: list[Exchange] = []
        self.register = StationFolder(self.folder)
        pki = self.pki
        self.ea_identity = AuthorityIdentity(pki.ea, pki.root, pki.ea_key, pki.ea_encryption_key)
        self.aa_identity = AuthorityIdentity(pki.aa, pki.root, pki.aa_key, pki.aa_encryption_key)
        self.canonical = self.add_station(ITS_ID)
        self.start()

    def start(self, known_authorities: tuple[Certificate, ...] | None = None) -> None:
        """Start both authorities, or start them again; the EA knows the AA unless other AAs are given."""
        authorities = (self.pki.aa,) if known_authorities is None else known_authorities
        clock = lambda: self.now_us  # noqa: E731
        notify = self.decisions.append
        self.ea = EnrolmentAuthority(self.ea_identity, self.register, authorities, clock=clock, notify=notify)
        known = RemoteAuthority(EA_URL, self.pki.ea)
        self.aa = AuthorizationAuthority(self.aa_identity, [known], self.post, clock=clock, notify=notify)

    def add_station(self, its_id: bytes, permissions: tuple[Permission, ...] = TICKET_PERMISSIONS) -> SoftwareKey:
        """Register a station; its canonical key."""
        key = SoftwareKey.generate()
        self.register.add_station(RegisteredStation(its_id, key.public_key, permissions))
        return key

    def post(self, url: str, octets: bytes) -> bytes:
        """Send a request to an authority, and record both messages."""
        if url == EA_URL and not self.ea_answers:
            return b"<html>not an EA</html>"
        response = {EA_URL: self.ea, AA_URL: self.aa}[url].answer(octets)
        self.exchanges.append(Exchange(url, octets, response))
        return response

    def enrolment(self, key: SoftwareKey, **changes: object) -> SentRequest:
        """A right request for a credential; `changes` are other arguments of `enrolment_request`."""
        arguments: dict[str, object] = {
            "its_id": ITS_ID,
            "canonical_key": self.canonical,
            "key": key,
            "attributes": SubjectAttributes(CREDENTIAL_PERMISSIONS),
            "ea": self.pki.ea,
            "now_us": self.now_us,
        }
        return enrolment_request(**(arguments | changes))  # type: ignore[arg-type]

    def credential(
        self, its_id: bytes = ITS_ID, permissions: tuple[Permission, ...] = CREDENTIAL_PERMISSIONS
    ) -> CertifiedKey:
        """A credential that the EA knows, without a request."""
        key, validity = SoftwareKey.generate(), Validity(NOW_S - 60, NOW_S + 86_400)
        certificate = issue(self.pki.ea_key, key.public_key, validity, issuer=self.pki.ea, permissions=permissions)
        self.register.add_credential(its_id, certificate)
        return CertifiedKey(certificate, key)

    def authorization(self, credential: CertifiedKey, key: SoftwareKey, **changes: object) -> SentRequest:
        """A right request for a ticket; `changes` are other arguments of `authorization_request`."""
        arguments: dict[str, object] = {
            "credential": credential,
            "key": key,
            "attributes": SubjectAttributes(CAM_ONLY),
            "ea": self.pki.ea,
            "aa": self.pki.aa,
            "now_us": self.now_us,
        }
        return authorization_request(**(arguments | changes))  # type: ignore[arg-type]
