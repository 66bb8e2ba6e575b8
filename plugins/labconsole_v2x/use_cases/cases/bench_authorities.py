"""EA and AA on the bench of a use case, over HTTP on loopback, and a station's requests to them: all is recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from labconsole_v2x.pki.authority import Decision
from labconsole_v2x.pki.authorization_authority import Post, RemoteAuthority
from labconsole_v2x.pki.authorization_messages import HMAC_KEY_SIZE, AuthorizationCode, read_authorization_request
from labconsole_v2x.pki.enrolment_authority import RegisteredStation
from labconsole_v2x.pki.enrolment_messages import EnrolmentCode
from labconsole_v2x.pki.http_transport import AuthorityServer, AuthorityUnreachableError, post
from labconsole_v2x.pki.request_parts import Content, SubjectAttributes, read_data
from labconsole_v2x.pki.secured_messages import (
    AuthorityIdentity,
    SentRequest,
    UnreadableRequestError,
    open_request,
    payload_of,
)
from labconsole_v2x.pki.station_requests import (
    Certified,
    authorization_request,
    certificate_of_response,
    enrolment_request,
)
from labconsole_v2x.security.issuing import CREDENTIAL_PERMISSIONS, TICKET_PERMISSIONS
from labconsole_v2x.security.keys import SigningKey
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.structures import Certificate, Permission, Validity
from labconsole_v2x.use_cases.cases.bench import Bench
from labconsole_v2x.use_cases.evidence import Kind

CaseKey = Certified[SigningKey]
"""A certificate and its key, in the backend of the run."""
ITS_ID = b"use-case-station-1"
_LOOPBACK = "127.0.0.1"


@dataclass
class CaseRegister:
    """The stations and credentials of the EA of one case."""

    stations: dict[bytes, RegisteredStation] = field(default_factory=dict)
    credentials: dict[bytes, tuple[bytes, Certificate]] = field(default_factory=dict)

    def station(self, its_id: bytes) -> RegisteredStation | None:
        """A registered station."""
        return self.stations.get(its_id)

    def credential(self, hashed_id8: bytes) -> tuple[RegisteredStation, Certificate] | None:
        """A credential that was issued and not withdrawn, and its station."""
        its_id, certificate = self.credentials.get(hashed_id8, (b"", None))
        station = self.stations.get(its_id)
        return (station, certificate) if station and certificate else None

    def add_credential(self, its_id: bytes, certificate: Certificate) -> None:
        """Note a credential."""
        self.credentials[certificate.hashed_id8] = (its_id, certificate)


class BenchAuthorities:
    """EA and AA that run until the case ends, and a registered station with its canonical key."""

    def __init__(self, bench: Bench, permissions: Sequence[Permission] = TICKET_PERMISSIONS) -> None:
        self.bench = bench
        self.step = ""
        """What is tried now: the label of decisions; by default the kind of the request."""
        self.register = CaseRegister()
        self.canonical = self.add_station(ITS_ID, permissions)
        pki = bench.pki
        ea = AuthorityIdentity(pki.ea, pki.root, pki.ea_key, pki.ea_encryption_key)
        aa = AuthorityIdentity(pki.aa, pki.root, pki.aa_key, pki.aa_encryption_key)
        parts, clock = bench.parts, bench.clock
        self._ea = parts.enrolment_authority(ea, self.register, [pki.aa], clock=clock, notify=self._noted("EA"))
        self.ea = self._serve("EA", ea, self._ea.answer)
        self._aa = parts.authorization_authority(aa, [self.ea], self.post, clock=clock, notify=self._noted("AA"))
        self.aa = self._serve("AA", aa, self._aa.answer)

    def add_station(self, its_id: bytes, permissions: Sequence[Permission] = TICKET_PERMISSIONS) -> SigningKey:
        """Register a station; its canonical key."""
        key = self.bench.new_key()
        self.register.stations[its_id] = RegisteredStation(its_id, key.public_key, tuple(permissions))
        return key

    def _serve(self, name: str, identity: AuthorityIdentity, answer: Callable[[bytes], bytes]) -> RemoteAuthority:
        """Serve an authority; what it can decrypt is recorded."""
        recorder = self.bench.recorder

        def recorded(octets: bytes) -> bytes:
            with suppress(UnreadableRequestError):
                opened = _without_hmac_key(open_request(octets, identity).signed_octets)
                recorder.add(Kind.OPENED, label=name, octets=opened)
            try:
                return answer(octets)
            except UnreadableRequestError:
                self.bench.decided(f"{name}: {self.step}", "refused")
                raise

        server = self.bench.resources.enter_context(AuthorityServer(_LOOPBACK, 0, recorded))
        return RemoteAuthority(server.url, identity.certificate)

    def _noted(self, name: str) -> Callable[[Decision], None]:
        return lambda decision: self.bench.decided(f"{name}: {self.step or decision.request}", decision.code)

    def post(self, url: str, octets: bytes) -> bytes:
        """Send a request over HTTP, and record both messages."""
        recorder = self.bench.recorder
        recorder.add(Kind.MESSAGE, label=f"request to {url}", octets=octets)
        response = post(url, octets)
        recorder.add(Kind.MESSAGE, label=f"response of {url}", octets=response)
        return response

    # Requests of the station

    def enrolment(
        self,
        key: SigningKey,
        *,
        its_id: bytes = ITS_ID,
        canonical: SigningKey | None = None,
        late_s: float = 0,
        permissions: Sequence[Permission] = CREDENTIAL_PERMISSIONS,
    ) -> SentRequest:
        """A request for a credential, right unless something else is given."""
        attributes, now_us = SubjectAttributes(tuple(permissions)), self.bench.clock() - round(late_s * 1e6)
        return enrolment_request(its_id, canonical or self.canonical, key, attributes, self.ea.certificate, now_us)

    def enrol(self) -> CaseKey:
        """An enrolment credential. Raises UserError."""
        key = self.bench.new_key()
        sent = self.enrolment(key)
        response = self.post(self.ea.url, sent.octets)
        return self._certified(response, sent, self.ea, key)

    def authorization(
        self,
        credential: CaseKey,
        key: SigningKey,
        *,
        late_s: float = 0,
        permissions: Sequence[Permission] = TICKET_PERMISSIONS,
        validity: Validity | None = None,
        ea: Certificate | None = None,
    ) -> SentRequest:
        """A request for a ticket, right unless something else is given."""
        attributes, now_us = SubjectAttributes(tuple(permissions), validity), self.bench.clock() - round(late_s * 1e6)
        return authorization_request(
            credential, key, attributes, ea or self.ea.certificate, self.aa.certificate, now_us
        )

    def authorize(
        self,
        credential: CaseKey,
        permissions: Sequence[Permission] = TICKET_PERMISSIONS,
        validity: Validity | None = None,
        post: Post | None = None,
    ) -> CaseKey:
        """A ticket, by `post` in place of HTTP. Raises UserError."""
        key = self.bench.new_key()
        sent = self.authorization(credential, key, permissions=permissions, validity=validity)
        response = (post or self.post)(self.aa.url, sent.octets)
        return self._certified(response, sent, self.aa, key)

    def _certified(self, response: bytes, sent: SentRequest, authority: RemoteAuthority, key: SigningKey) -> CaseKey:
        of_ea = authority is self.ea
        content = Content.ENROLMENT_RESPONSE if of_ea else Content.AUTHORIZATION_RESPONSE
        codes = EnrolmentCode if of_ea else AuthorizationCode
        certificate = certificate_of_response(response, sent, authority, self.bench.pki.root, content, codes)
        self.bench.recorder.add(Kind.CERTIFICATE, label="credential" if of_ea else "ticket", octets=certificate.octets)
        return Certified(certificate, key)

    def attempt(self, step: str, authority: RemoteAuthority, octets: bytes) -> bytes | None:
        """The response to a request of the step; None where the authority could not read it."""
        self.step = step
        try:
            return self.post(authority.url, octets)
        except AuthorityUnreachableError:
            return None
        finally:
            self.step = ""


def _without_hmac_key(signed_octets: bytes) -> bytes:
    """A decrypted request with zeros in place of the key of its keyTag: no secret key is recorded."""
    with suppress(MalformedDataError):
        content, message = read_data(payload_of(scan_signed_data(signed_octets)))
        if content is Content.AUTHORIZATION_REQUEST:
            return signed_octets.replace(read_authorization_request(message).hmac_key, bytes(HMAC_KEY_SIZE))
    return signed_octets
