"""Signed trust and revocation lists: EtsiTs103097Data-Signed of a TLM or root CA, opened only if all of it is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from labconsole.errors import UserError
from labconsole_v2x.pki.lists.trust_lists import (
    AaEntry,
    CentreEntry,
    EaEntry,
    Entry,
    RevocationList,
    RootEntry,
    TlmEntry,
    TrustList,
    encode_revocation_list,
    encode_trust_list,
    read_revocation_list,
    read_trust_list,
)
from labconsole_v2x.pki.request_parts import Content, encode_data, read_data
from labconsole_v2x.pki.secured_messages import is_signed_by, payload_of
from labconsole_v2x.security.issuing import CRL_PSID, CTL_PSID
from labconsole_v2x.security.keys import SigningKey
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.scanning import scan_certificate, scan_signed_data
from labconsole_v2x.security.signing import PacketSigner
from labconsole_v2x.security.structures import Certificate, Header, SignedData

FUTURE_US = 5_000_000
"""How far the times of a list may be in the future."""
TRUST_LISTS = (Content.TLM_TRUST_LIST, Content.ROOT_TRUST_LIST)
SSP_BITS: dict[type[Entry], int] = {TlmEntry: 0x80, RootEntry: 0x40, EaEntry: 0x20, AaEntry: 0x10, CentreEntry: 0x08}
"""TS 102 941, annex B: the bit in the second octet of the CTL's SSP that permits entries of a kind."""
_SSP_VERSION = 1


class ListReason(StrEnum):
    """Why a list is refused."""

    MALFORMED = "malformed"
    WRONG_SIGNER = "wrong signer"
    SIGNATURE_INVALID = "signature invalid"
    PERMISSION_MISSING = "permissions of the signer exceeded"
    EXPIRED = "expired"
    IN_FUTURE = "issued in the future"
    OLDER = "older than the list applied"
    WRONG_BASE = "delta for another base"
    ENTRY_INVALID = "invalid entry"


class RefusedListError(UserError):
    """A list that is refused; `reason` is why."""

    def __init__(self, reason: ListReason, detail: str) -> None:
        super().__init__(f"The list is refused ({reason}: {detail}): what was trusted before stays. Fetch another one.")
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class OpenedList:
    """A list whose signature, signer, permissions and times are right at this time."""

    content: Content
    signer: Certificate
    generation_us: int
    values: TrustList | RevocationList


FindSigner = Callable[[Content, bytes], Certificate | None]
"""The trusted certificate that signs lists of a kind, by its HashedId8."""


def sign_trust_list(
    trust_list: TrustList, content: Content, key: SigningKey, certificate: Certificate, now_us: int
) -> bytes:
    """`TlmCertificateTrustListMessage` or `RcaCertificateTrustListMessage`, by `content`.

    What is given is signed, whether the signer may or not, as by `issuing.issue`.
    """
    return _signed(content, encode_trust_list(trust_list), CTL_PSID, key, certificate, now_us)


def sign_revocation_list(
    revocation_list: RevocationList, key: SigningKey, certificate: Certificate, now_us: int
) -> bytes:
    """`CertificateRevocationListMessage`. What is given is signed, whether the signer may or not."""
    octets = encode_revocation_list(revocation_list)
    return _signed(Content.REVOCATION_LIST, octets, CRL_PSID, key, certificate, now_us)


def _signed(
    content: Content, message: bytes, psid: int, key: SigningKey, certificate: Certificate, now_us: int
) -> bytes:
    header = Header(psid, now_us)
    return PacketSigner(certificate, key).sign(encode_data(content, message), header, include_certificate=True)


def open_list(octets: bytes, find_signer: FindSigner, now_us: int) -> OpenedList:
    """A list of a trusted signer, checked in full at a time. Raises `RefusedListError`."""
    opened = read_list(octets, find_signer)
    now_s, values = now_us // 1_000_000, opened.values
    validity = opened.signer.validity
    if not validity.start_s <= now_s < validity.end_s:
        raise RefusedListError(ListReason.WRONG_SIGNER, "the signer's certificate is not valid now")
    if values.next_update_s <= now_s:
        raise RefusedListError(ListReason.EXPIRED, "the time of its next update has passed")
    issued_us = opened.generation_us
    if isinstance(values, RevocationList):
        issued_us = max(issued_us, values.this_update_s * 1_000_000)
    if issued_us > now_us + FUTURE_US:
        raise RefusedListError(ListReason.IN_FUTURE, "check this computer's clock")
    return opened


def read_list(octets: bytes, find_signer: FindSigner) -> OpenedList:
    """A list of a trusted signer, checked but for its times. Raises `RefusedListError`."""
    try:
        data = scan_signed_data(octets)
        content, message = read_data(payload_of(data))
        if content in TRUST_LISTS:
            values: TrustList | RevocationList = read_trust_list(message, content)
        elif content is Content.REVOCATION_LIST:
            values = read_revocation_list(message)
        else:
            raise RefusedListError(ListReason.MALFORMED, "it is a message of another kind")
        signer_id = _signer_id(data)
    except MalformedDataError as error:
        cause, _, _ = str(error).partition(". ")
        raise RefusedListError(ListReason.MALFORMED, cause) from error
    header, psid = data.header, CTL_PSID if content in TRUST_LISTS else CRL_PSID
    if header.generation_time is None or header != Header(psid, header.generation_time):
        raise RefusedListError(ListReason.MALFORMED, "another ITS-AID, no generation time, or further header fields")
    signer = find_signer(content, signer_id)
    if signer is None:
        raise RefusedListError(ListReason.WRONG_SIGNER, f"{signer_id.hex() or 'self'} is not trusted for such lists")
    if not is_signed_by(data, signer.verification_key, signer.canonical):
        raise RefusedListError(ListReason.SIGNATURE_INVALID, f"it is not that of {signer.name or signer_id.hex()}")
    if (excess := permission_fault(values, signer)) is not None:
        raise RefusedListError(ListReason.PERMISSION_MISSING, excess)
    return OpenedList(content, signer, header.generation_time, values)


def _signer_id(data: SignedData) -> bytes:
    """The HashedId8 of the signer, empty for "self". Raises `MalformedDataError`."""
    if data.digest is not None:
        return data.digest
    if len(data.certificates) > 1:
        raise MalformedDataError("More than one certificate of the signer. Check where these octets come from.")
    return scan_certificate(data.certificates[0]).hashed_id8 if data.certificates else b""


def permission_fault(values: TrustList | RevocationList, signer: Certificate) -> str | None:
    """What a list contains that the SSP of its signer does not permit."""
    psid = CTL_PSID if isinstance(values, TrustList) else CRL_PSID
    ssp = next((one.ssp for one in signer.permissions if one.psid == psid and one.bitmap and one.ssp), b"")
    if ssp[:1] != bytes((_SSP_VERSION,)):
        return f"no permission for ITS-AID {psid}"
    if isinstance(values, TrustList):
        bits = ssp[1] if len(ssp) > 1 else 0
        for command in values.commands:
            needed = SSP_BITS.get(type(command), 0)  # type: ignore[arg-type]
            if needed & ~bits:
                return f"{type(command).__name__} without permission"
    return None
