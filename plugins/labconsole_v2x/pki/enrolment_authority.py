"""The enrolment authority (EA): issues enrolment credentials, and validates authorizations for AAs (F-CER-04).

TS 102 941, 6.2.3.2 and 6.2.3.4. It knows which station asks, and never sees the keys of a ticket.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from labconsole.errors import UserError
from labconsole.safe_text import shown
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
    EcSignature,
    ValidationCode,
    ValidationRequest,
    ValidationResponse,
    encode_validation_response,
    read_validation_request,
)
from labconsole_v2x.pki.enrolment_messages import (
    CertificateResponse,
    EnrolmentCode,
    EnrolmentRequest,
    encode_certificate_response,
    read_enrolment_request,
)
from labconsole_v2x.pki.request_parts import CERTIFICATE_FORMAT, Content
from labconsole_v2x.pki.secured_messages import (
    AuthorityIdentity,
    ReceivedRequest,
    check_profile,
    is_point,
    is_signed_by,
    open_request,
    payload_of,
    seal_response,
)
from labconsole_v2x.security.encoding import YEAR_S
from labconsole_v2x.security.encryption import DecryptionError, decrypt_with_certificate
from labconsole_v2x.security.issuing import CERTIFICATE_REQUEST_PSID, CREDENTIAL_PERMISSIONS
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.structures import Certificate, Permission, PublicKey, SignedData
from labconsole_v2x.security.verification import its_now

CREDENTIAL_S, LONGEST_CREDENTIAL_S = YEAR_S, 3 * YEAR_S
"""The validity of an enrolment credential: by default, and at most."""
_TO_AUTHORIZE = (Permission(CERTIFICATE_REQUEST_PSID, b"\x01\x40"),)
"""What a credential must permit that signs requests for tickets."""
_TO_ENROL = (Permission(CERTIFICATE_REQUEST_PSID, b"\x01\x80"),)
"""What a credential must permit that signs a request for the next one."""


@dataclass(frozen=True, slots=True)
class RegisteredStation:
    """A station that its manufacturer or operator has registered at the EA."""

    its_id: bytes
    canonical_key: PublicKey
    permissions: tuple[Permission, ...]
    """The most that its tickets may permit."""


class StationRegister(Protocol):
    """The stations that an EA knows, and the credentials that it has issued."""

    def station(self, its_id: bytes) -> RegisteredStation | None:
        """A registered station."""

    def credential(self, hashed_id8: bytes) -> tuple[RegisteredStation, Certificate] | None:
        """A credential that was issued and not withdrawn, and its station."""

    def add_credential(self, its_id: bytes, certificate: Certificate) -> None:
        """Note a credential before it is sent, and withdraw the one before."""


class EnrolmentAuthority(Authority):
    """An EA: any thread may call `answer`."""

    def __init__(
        self,
        identity: AuthorityIdentity,
        register: StationRegister,
        authorization_authorities: Iterable[Certificate],
        *,
        clock: Callable[[], int] = its_now,
        notify: Callable[[Decision], None] = lambda _: None,
    ) -> None:
        super().__init__(identity.key, (identity.certificate, identity.root), clock, notify)
        self.identity = identity
        self._register = register
        self._authorities = {one.hashed_id8: one for one in authorization_authorities}

    def answer(self, octets: bytes) -> bytes:
        """The response to a request. Raises `UnreadableRequestError`: no response can be encrypted."""
        request = open_request(octets, self.identity)
        try:
            data, content, message = signed_message(request.signed_octets)
        except MalformedDataError as error:
            return self._enrolment_response(request, EnrolmentCode.CANTPARSE, str(error))
        if content is Content.VALIDATION_REQUEST:
            return self._answer_validation(request, data, message)
        try:
            if content is not Content.ENROLMENT_REQUEST:
                raise Refusal(EnrolmentCode.BADCONTENTTYPE, "not an enrolment or validation request")
            certificate = self._enrolled(data, message)
        except Refusal as refusal:
            return self._enrolment_response(request, EnrolmentCode(refusal.code), str(refusal))
        except MalformedDataError as error:
            return self._enrolment_response(request, EnrolmentCode.CANTPARSE, str(error))
        except UserError as error:  # of the register
            return self._enrolment_response(request, EnrolmentCode.DENIEDREQUEST, str(error))
        reason = f"credential {certificate.hashed_id8.hex()}"
        return self._enrolment_response(request, EnrolmentCode.OK, reason, certificate)

    def _enrolment_response(
        self, request: ReceivedRequest, code: EnrolmentCode, reason: str, certificate: Certificate | None = None
    ) -> bytes:
        self.decided("enrolment", code, reason)
        octets = certificate.octets if certificate else None
        message = encode_certificate_response(CertificateResponse(request.request_hash, code, octets))
        return seal_response(Content.ENROLMENT_RESPONSE, message, request, self.identity, self.clock())

    def _enrolled(self, outer: SignedData, message: bytes) -> Certificate:
        """The enrolment credential. Raises `Refusal` or `MalformedDataError`."""
        possession = scan_signed_data(message)
        check_profile(possession)
        wanted = read_enrolment_request(payload_of(possession))
        if possession.digest is not None:
            raise Refusal(EnrolmentCode.DENIEDREQUEST, "the proof of possession names a certificate")
        for data in (outer, possession):
            self.check_time(data, EnrolmentCode.DENIEDREQUEST)
        station = self._registered(outer, wanted) if outer.digest is None else self._enrolled_before(outer, wanted)
        self._check_keys(wanted)
        if not is_signed_by(possession, wanted.keys.verification, b""):
            raise Refusal(EnrolmentCode.INVALIDSIGNATURE, "the proof of possession of the new key is wrong")
        attributes = wanted.attributes
        if wanted.certificate_format != CERTIFICATE_FORMAT or not attributes.permissions:
            raise Refusal(EnrolmentCode.INCOMPLETEREQUEST, "another certificate format, or no permissions")
        check_attributes(attributes, EnrolmentCode.DENIEDPERMISSIONS)
        check_permissions(attributes.permissions, CREDENTIAL_PERMISSIONS, EnrolmentCode.DENIEDPERMISSIONS)
        denied = EnrolmentCode.DENIEDREQUEST
        validity = chosen_validity(attributes.validity, self.clock(), CREDENTIAL_S, LONGEST_CREDENTIAL_S, 0, denied)
        self.remember(outer, denied)
        certificate = self.certify(wanted.keys, validity, attributes, EnrolmentCode.DENIEDPERMISSIONS)
        self._register.add_credential(station.its_id, certificate)
        return certificate

    def _registered(self, outer: SignedData, wanted: EnrolmentRequest) -> RegisteredStation:
        """The station whose canonical key has signed. Raises `Refusal`."""
        station = self._register.station(wanted.its_id)
        if station is None:
            raise Refusal(
                EnrolmentCode.UNKNOWNITS, f"no station {shown(wanted.its_id.decode(errors='replace'))} is registered"
            )
        if not is_signed_by(outer, station.canonical_key, b""):
            raise Refusal(EnrolmentCode.INVALIDSIGNATURE, "it is not signed with the station's canonical key")
        return station

    def _enrolled_before(self, outer: SignedData, wanted: EnrolmentRequest) -> RegisteredStation:
        """The station whose current credential has signed (re-enrolment, 6.2.3.2.1). Raises `Refusal`."""
        known = self._register.credential(outer.digest or b"")
        if known is None or wanted.its_id != outer.digest:
            raise Refusal(EnrolmentCode.UNKNOWNITS, "the enrolment credential is unknown here, withdrawn, or another")
        station, credential = known
        if credential.validity.end_s <= self.clock() // 1_000_000:
            raise Refusal(EnrolmentCode.UNKNOWNITS, "the enrolment credential has expired")
        if not is_signed_by(outer, credential.verification_key, credential.canonical):
            raise Refusal(EnrolmentCode.INVALIDSIGNATURE, "it is not signed with the enrolment credential")
        check_permissions(_TO_ENROL, credential.permissions, EnrolmentCode.DENIEDPERMISSIONS)
        return station

    def _check_keys(self, wanted: EnrolmentRequest) -> None:
        if not is_point(wanted.keys.verification):
            raise Refusal(EnrolmentCode.INVALIDKEYS, "the verification key is not a point of its curve")
        if wanted.keys.encryption and not is_point(wanted.keys.encryption):
            raise Refusal(EnrolmentCode.INVALIDKEYS, "the encryption key is not a point of its curve")

    def _answer_validation(self, request: ReceivedRequest, data: SignedData, message: bytes) -> bytes:
        confirmed = None
        code, reason = ValidationCode.OK, "authorized"
        try:
            confirmed = self._validated(data, message).shared.attributes
        except Refusal as refusal:
            code, reason = ValidationCode(refusal.code), str(refusal)
        except MalformedDataError as error:
            code, reason = ValidationCode.CANTPARSE, str(error)
        except UserError as error:  # of the register
            code, reason = ValidationCode.DENIEDREQUEST, str(error)
        self.decided("authorization validation", code, reason)
        response = encode_validation_response(ValidationResponse(request.request_hash, code, confirmed))
        return seal_response(Content.VALIDATION_RESPONSE, response, request, self.identity, self.clock())

    def _validated(self, data: SignedData, message: bytes) -> ValidationRequest:
        """The request, if the station may have such a ticket. Raises `Refusal` or `MalformedDataError`."""
        authority = self._authorities.get(data.digest or b"")
        if authority is None or authority.validity.end_s <= self.clock() // 1_000_000:
            raise Refusal(ValidationCode.INVALIDAA, "the AA is unknown or its certificate has expired")
        if not is_signed_by(data, authority.verification_key, authority.canonical):
            raise Refusal(ValidationCode.INVALIDAASIGNATURE, "it is not signed by the AA")
        self.check_time(data, ValidationCode.DENIEDREQUEST)
        asked = read_validation_request(message)
        if asked.shared.ea_id != self.identity.certificate.hashed_id8:
            raise Refusal(ValidationCode.WRONGEA, "it is meant for another EA")
        signature = self._ec_signature(asked.ec_signature)
        if signature.external_hash != hashlib.sha256(asked.shared_octets).digest():
            raise Refusal(ValidationCode.INVALIDSIGNATURE, "the EC signature is over another request")
        self.check_time(signature, ValidationCode.DENIEDREQUEST)
        known = self._register.credential(signature.digest or b"")
        if known is None:
            raise Refusal(ValidationCode.UNKNOWNITS, "the enrolment credential is unknown here, or withdrawn")
        station, credential = known
        if credential.validity.end_s <= self.clock() // 1_000_000:
            raise Refusal(ValidationCode.UNKNOWNITS, "the enrolment credential has expired")
        if not is_signed_by(signature, credential.verification_key, credential.canonical):
            raise Refusal(ValidationCode.INVALIDSIGNATURE, "it is not signed with the enrolment credential")
        if asked.shared.certificate_format != CERTIFICATE_FORMAT:
            raise Refusal(ValidationCode.DENIEDREQUEST, "another certificate format")
        check_attributes(asked.shared.attributes, ValidationCode.DENIEDPERMISSIONS)
        check_permissions(asked.shared.attributes.permissions, station.permissions, ValidationCode.DENIEDPERMISSIONS)
        check_permissions(_TO_AUTHORIZE, credential.permissions, ValidationCode.DENIEDPERMISSIONS)
        self.remember(data, ValidationCode.DENIEDREQUEST)
        return asked

    def _ec_signature(self, given: EcSignature) -> SignedData:
        """The signed data with the hash of the request. Raises `Refusal` or `MalformedDataError`."""
        octets = given.octets
        if given.encrypted:
            try:
                octets = decrypt_with_certificate(octets, self.identity.certificate, self.identity.encryption_key)
            except DecryptionError as error:
                raise Refusal(ValidationCode.WRONGEA, "the EC signature is not encrypted to this EA") from error
        signature = scan_signed_data(octets)
        check_profile(signature)
        return signature
