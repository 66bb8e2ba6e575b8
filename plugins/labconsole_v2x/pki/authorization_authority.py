"""The authorization authority (AA): issues authorization tickets, once the station's EA has validated the request.

TS 102 941, 6.2.3.3. It sees the keys of the ticket, and never which station asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from labconsole.errors import UserError
from labconsole_v2x.pki.authority import (
    Authority,
    Decision,
    Refusal,
    check_attributes,
    check_permissions,
    chosen_validity,
    signed_message,
)
from labconsole_v2x.pki.authorization_messages import (
    AuthorizationCode,
    AuthorizationRequest,
    ValidationCode,
    ValidationRequest,
    encode_validation_request,
    read_authorization_request,
    read_validation_response,
)
from labconsole_v2x.pki.enrolment_messages import CertificateResponse, encode_certificate_response, identifier_of
from labconsole_v2x.pki.request_parts import CERTIFICATE_FORMAT, Content, SubjectAttributes, encode_data
from labconsole_v2x.pki.secured_messages import (
    AuthorityIdentity,
    BadResponseError,
    is_point,
    is_signed_by,
    open_request,
    open_response,
    seal_request,
    seal_response,
    sign_payload,
)
from labconsole_v2x.security.issuing import TICKET_S
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.structures import Certificate, SignedData
from labconsole_v2x.security.verification import its_now

Post = Callable[[str, bytes], bytes]
"""Sends a request to a URL and returns the response. Raises UserError."""
AHEAD_S = 92 * 24 * 3600
"""How far ahead a ticket may begin: three months."""


@dataclass(frozen=True, slots=True)
class RemoteAuthority:
    """An authority at its URL."""

    url: str
    certificate: Certificate


class AuthorizationAuthority(Authority):
    """An AA: any thread may call `answer`, which waits for the EA."""

    def __init__(
        self,
        identity: AuthorityIdentity,
        enrolment_authorities: Iterable[RemoteAuthority],
        post: Post,
        *,
        clock: Callable[[], int] = its_now,
        notify: Callable[[Decision], None] = lambda _: None,
    ) -> None:
        super().__init__(identity.key, (identity.certificate, identity.root), clock, notify)
        self.identity = identity
        self._authorities = {one.certificate.hashed_id8: one for one in enrolment_authorities}
        self._post = post

    def answer(self, octets: bytes) -> bytes:
        """The response to a request. Raises `UnreadableRequestError`: no response can be encrypted."""
        request = open_request(octets, self.identity)
        certificate = None
        code, reason = AuthorizationCode.OK, ""
        try:
            data, content, message = signed_message(request.signed_octets)
            if content is not Content.AUTHORIZATION_REQUEST:
                raise Refusal(AuthorizationCode.ITS_AA_BADCONTENTTYPE, "not an authorization request")
            certificate = self._authorized(data, read_authorization_request(message))
            reason = f"ticket {certificate.hashed_id8.hex()}"
        except Refusal as refusal:
            code, reason = AuthorizationCode(refusal.code), str(refusal)
        except MalformedDataError as error:
            code, reason = AuthorizationCode.ITS_AA_CANTPARSE, str(error)
        self.decided("authorization", code, reason)
        response = CertificateResponse(request.request_hash, code, certificate.octets if certificate else None)
        encoded = encode_certificate_response(response)
        return seal_response(Content.AUTHORIZATION_RESPONSE, encoded, request, self.identity, self.clock())

    def _authorized(self, data: SignedData, wanted: AuthorizationRequest) -> Certificate:
        """The ticket. Raises `Refusal`."""
        shared, keys = wanted.forwarded.shared, wanted.keys
        self.check_time(data, AuthorizationCode.ITS_AA_OUTOFSYNCREQUEST)
        authority = self._authorities.get(shared.ea_id)
        if authority is None:
            raise Refusal(AuthorizationCode.ITS_AA_UNKNOWNEA, f"EA {shared.ea_id.hex()} is unknown")
        if shared.certificate_format != CERTIFICATE_FORMAT or not shared.attributes.permissions:
            raise Refusal(AuthorizationCode.ITS_AA_INCOMPLETEREQUEST, "another certificate format, or no permissions")
        if not wanted.tag_fits:
            raise Refusal(AuthorizationCode.ITS_AA_KEYSDONTMATCH, "the keyTag is not that of the keys")
        if data.digest is not None or not is_signed_by(data, keys.verification, b""):
            raise Refusal(AuthorizationCode.INVALIDSIGNATURE, "the proof of possession of the ticket's key is wrong")
        if keys.encryption and not is_point(keys.encryption):
            raise Refusal(AuthorizationCode.ITS_AA_INVALIDENCRYPTIONKEY, "it is not a point of its curve")
        self.remember(data, AuthorizationCode.ITS_AA_OUTOFSYNCREQUEST)
        confirmed = self._validated(authority, wanted.forwarded)
        denied = AuthorizationCode.ITS_AA_DENIEDPERMISSIONS
        check_attributes(confirmed, denied)
        check_permissions(confirmed.permissions, shared.attributes.permissions, denied)
        validity = chosen_validity(confirmed.validity, self.clock(), TICKET_S, TICKET_S, AHEAD_S, denied)
        return self.certify(keys, validity, confirmed, denied)

    def _validated(self, authority: RemoteAuthority, forwarded: ValidationRequest) -> SubjectAttributes:
        """The attributes that the EA confirms. Raises `Refusal`."""
        own = self.identity
        message = encode_validation_request(forwarded.shared_octets, forwarded.ec_signature)
        payload = encode_data(Content.VALIDATION_REQUEST, message)
        try:
            sent = seal_request(sign_payload(payload, own.key, own.certificate, self.clock()), authority.certificate)
            octets = self._post(authority.url, sent.octets)
            encoded = open_response(octets, sent, authority.certificate, Content.VALIDATION_RESPONSE)
            response = read_validation_response(encoded)
            code = ValidationCode(response.code)
        except (UserError, BadResponseError, ValueError) as error:
            raise Refusal(AuthorizationCode.AA_EA_CANTREACHEA, f"the EA {authority.url}: {error}") from error
        if response.request_hash != sent.request_hash:
            raise Refusal(AuthorizationCode.AA_EA_CANTREACHEA, f"the EA {authority.url} answers another request")
        if response.attributes is None:
            raise Refusal(code.for_station, f"the EA refuses: {identifier_of(code)}")
        return response.attributes
