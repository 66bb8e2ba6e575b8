"""The station's side of TS 102 941: enrols at an EA, and gets authorization tickets from an AA, both by their URLs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Generic, TypeVar

from labconsole.errors import UserError
from labconsole_v2x.pki.authorization_authority import Post, RemoteAuthority
from labconsole_v2x.pki.authorization_messages import (
    HMAC_KEY_SIZE,
    AuthorizationCode,
    EcSignature,
    encode_authorization_request,
    encode_shared_request,
    key_tag,
)
from labconsole_v2x.pki.enrolment_messages import (
    EnrolmentCode,
    EnrolmentRequest,
    encode_enrolment_request,
    identifier_of,
    read_certificate_response,
)
from labconsole_v2x.pki.request_parts import CERTIFICATE_FORMAT, Content, PublicKeys, SubjectAttributes, encode_data
from labconsole_v2x.pki.secured_messages import (
    BadResponseError,
    SentRequest,
    is_point,
    open_response,
    request_header,
    seal_request,
    sign_payload,
)
from labconsole_v2x.security.chain import link_fault, root_fault
from labconsole_v2x.security.encoding import compressed, encode_to_be_signed_hash
from labconsole_v2x.security.encryption import encrypt_to_certificate
from labconsole_v2x.security.issuing import CERTIFICATE_REQUEST_PSID, CREDENTIAL_PERMISSIONS
from labconsole_v2x.security.keys import SigningKey, SoftwareKey
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.scanning import scan_certificate
from labconsole_v2x.security.signing import sign_to_be_signed_data
from labconsole_v2x.security.structures import Certificate, Permission, Validity
from labconsole_v2x.security.trust import software_verifier
from labconsole_v2x.security.verification import its_now

_MEANINGS = {
    "unknownits": "the EA does not know this station or its credential: register it, or enrol again",
    "invalidsignature": "a signature is wrong: check that key and certificate belong together",
    "deniedpermissions": "more is asked than granted: ask for fewer permissions, or have more registered",
    "deniedrequest": "the EA denies it: check this computer's clock, and send a new request",
    "outofsyncrequest": "the clocks differ, or it was sent before: check this computer's clock, send a new request",
    "unknownea": "the AA does not know the EA: choose an EA that it trusts",
    "cantreachea": "the AA does not reach the EA: check that the EA runs",
    "wrongea": "the request is meant for another EA: check the EA's certificate",
    "invalidaa": "the EA does not know the AA: choose an AA that it trusts",
}
"""By the end of a code's identifier: cause and remedy."""


class RefusedRequestError(UserError):
    """An authority refuses; `code` is its response code."""

    def __init__(self, url: str, code: IntEnum) -> None:
        identifier = identifier_of(code)
        meaning = _MEANINGS.get(identifier.rpartition("-")[2], "check what is asked for")
        super().__init__(f"{url} refuses: {identifier}; {meaning}.")
        self.code = code


Key = TypeVar("Key", bound=SigningKey, covariant=True)
"""In software, or in a token."""


@dataclass(frozen=True)
class Certified(Generic[Key]):
    """A certificate of the station, and its private key."""

    certificate: Certificate
    key: Key


CertifiedKey = Certified[SoftwareKey]
"""One whose key can be stored in a folder."""


class Task(Enum):
    """What an authority does: its bit in the SSP of certificate requests (TS 102 941, annex B), and who does it."""

    ENROLMENT = (0x04, "an EA")
    AUTHORIZATION = (0x10, "an AA")

    def __init__(self, bit: int, authority: str) -> None:
        self.bit = bit
        self.authority = authority


def check_authority(name: str, certificate: Certificate, root: Certificate, task: Task) -> None:
    """Check that an authority's certificate is one under the root, for a task, and can be encrypted to.

    Raises UserError.
    """
    if not is_point(root.verification_key):
        raise UserError("The root's public key is not a point of its curve: choose another root.")
    verify = software_verifier(root.verification_key)
    if (fault := root_fault(root, verify)) is not None:
        raise UserError(f"The root is not the certificate of a root CA ({fault}): choose another root.")
    if (fault := link_fault(certificate, (root,), verify)) is not None:
        raise UserError(
            f"The certificate of {name} is not one under the root {root.hashed_id8.hex()} ({fault}): choose another "
            "certificate or root."
        )
    ssps = (one.ssp for one in certificate.permissions if one.psid == CERTIFICATE_REQUEST_PSID and one.bitmap)
    if not any(ssp and len(ssp) > 1 and ssp[1] & task.bit for ssp in ssps):
        raise UserError(
            f"The certificate of {name} is not one of {task.authority}: choose the certificate of {task.authority}."
        )
    if certificate.encryption_key is None or not is_point(certificate.encryption_key):
        raise UserError(f"The certificate of {name} has no key for encryption: choose that of an EA or AA.")


def enrol(
    its_id: bytes,
    canonical_key: SoftwareKey,
    ea: RemoteAuthority,
    root: Certificate,
    post: Post,
) -> CertifiedKey:
    """A new enrolment credential, signed for by the canonical key.

    Raises UserError: the EA does not answer, refuses (`RefusedRequestError`), or answers something else.
    """
    check_authority(ea.url, ea.certificate, root, Task.ENROLMENT)
    key = SoftwareKey.generate()
    attributes = SubjectAttributes(CREDENTIAL_PERMISSIONS)
    return _enrolled(
        enrolment_request(its_id, canonical_key, key, attributes, ea.certificate, its_now()), key, ea, root, post
    )


def re_enrol(credential: CertifiedKey, ea: RemoteAuthority, root: Certificate, post: Post) -> CertifiedKey:
    """The next enrolment credential, signed for by the current one, which the EA withdraws. Raises as `enrol`."""
    check_authority(ea.url, ea.certificate, root, Task.ENROLMENT)
    key = SoftwareKey.generate()
    attributes = SubjectAttributes(CREDENTIAL_PERMISSIONS)
    sent = re_enrolment_request(credential, key, attributes, ea.certificate, its_now())
    return _enrolled(sent, key, ea, root, post)


def _enrolled(sent: SentRequest, key: SoftwareKey, ea: RemoteAuthority, root: Certificate, post: Post) -> CertifiedKey:
    octets = post(ea.url, sent.octets)
    certificate = certificate_of_response(octets, sent, ea, root, Content.ENROLMENT_RESPONSE, EnrolmentCode)
    return _certified(certificate, key, ea)


def authorize(
    credential: CertifiedKey,
    permissions: Sequence[Permission],
    ea: Certificate,
    aa: RemoteAuthority,
    root: Certificate,
    post: Post,
    *,
    validity: Validity | None = None,
    private: bool = True,
) -> CertifiedKey:
    """A new authorization ticket, valid from now on unless a validity is asked for.

    `private`: the AA does not learn which station asks.

    Raises UserError: the AA does not answer, refuses (`RefusedRequestError`), or answers something else.
    """
    check_authority(aa.url, aa.certificate, root, Task.AUTHORIZATION)
    check_authority("the EA", ea, root, Task.ENROLMENT)
    key = SoftwareKey.generate()
    attributes = SubjectAttributes(tuple(permissions), validity)
    sent = authorization_request(credential, key, attributes, ea, aa.certificate, its_now(), private=private)
    octets = post(aa.url, sent.octets)
    certificate = certificate_of_response(octets, sent, aa, root, Content.AUTHORIZATION_RESPONSE, AuthorizationCode)
    return _certified(certificate, key, aa)


def enrolment_request(
    its_id: bytes,
    canonical_key: SigningKey,
    key: SigningKey,
    attributes: SubjectAttributes,
    ea: Certificate,
    now_us: int,
) -> SentRequest:
    """`EnrolmentRequestMessage`: signed with the new key (proof of possession), then with the canonical key."""
    possession = _proof_of_possession(its_id, key, attributes, now_us)
    return seal_request(sign_payload(possession, canonical_key, None, now_us), ea)


def re_enrolment_request(
    credential: Certified[SigningKey], key: SigningKey, attributes: SubjectAttributes, ea: Certificate, now_us: int
) -> SentRequest:
    """`EnrolmentRequestMessage` of an enrolled station: the current credential is its itsId, and signs (6.2.3.2.1)."""
    possession = _proof_of_possession(credential.certificate.hashed_id8, key, attributes, now_us)
    return seal_request(sign_payload(possession, credential.key, credential.certificate, now_us), ea)


def _proof_of_possession(its_id: bytes, key: SigningKey, attributes: SubjectAttributes, now_us: int) -> bytes:
    request = EnrolmentRequest(its_id, CERTIFICATE_FORMAT, PublicKeys(key.public_key), attributes)
    return encode_data(Content.ENROLMENT_REQUEST, sign_payload(encode_enrolment_request(request), key, None, now_us))


def authorization_request(
    credential: Certified[SigningKey],
    key: SigningKey,
    attributes: SubjectAttributes,
    ea: Certificate,
    aa: Certificate,
    now_us: int,
    *,
    private: bool = True,
) -> SentRequest:
    """`AuthorizationRequestMessageWithPop`: the EA's part signed with the credential, all with the ticket's key."""
    keys, hmac_key = PublicKeys(key.public_key), os.urandom(HMAC_KEY_SIZE)
    shared = encode_shared_request(ea.hashed_id8, key_tag(keys, hmac_key), attributes)
    tbs = encode_to_be_signed_hash(hashlib.sha256(shared).digest(), request_header(now_us))
    signature = sign_to_be_signed_data(tbs, credential.key, credential.certificate)
    if private:
        signature = encrypt_to_certificate(signature, ea)
    message = encode_authorization_request(keys, hmac_key, shared, EcSignature(signature, private))
    return seal_request(sign_payload(encode_data(Content.AUTHORIZATION_REQUEST, message), key, None, now_us), aa)


def certificate_of_response(
    octets: bytes,
    sent: SentRequest,
    authority: RemoteAuthority,
    root: Certificate,
    content: Content,
    codes: type[IntEnum],
) -> Certificate:
    """The certificate of a response, valid under the authority's chain. Raises UserError."""
    try:
        response = read_certificate_response(open_response(octets, sent, authority.certificate, content))
        if response.request_hash != sent.request_hash:
            raise BadResponseError("it answers another request")
        code = codes(response.code)
        certificate = scan_certificate(response.certificate) if response.certificate else None
    except (BadResponseError, MalformedDataError, ValueError) as error:
        reason = str(error).rstrip(".")
        raise UserError(f"{authority.url} answers no valid response ({reason}): check URL and certificate.") from error
    if certificate is None:
        raise RefusedRequestError(authority.url, code)
    verify = software_verifier(authority.certificate.verification_key)
    fault = link_fault(certificate, (authority.certificate, root), verify)
    if fault is not None:
        raise UserError(f"{authority.url} answers with a certificate that is not valid ({fault}): it is not used.")
    return certificate


def _certified(certificate: Certificate, key: SoftwareKey, authority: RemoteAuthority) -> CertifiedKey:
    if compressed(certificate.verification_key) != key.public_key:
        raise UserError(f"{authority.url} answers with a certificate of another key: it is not used.")
    return CertifiedKey(certificate, key)
