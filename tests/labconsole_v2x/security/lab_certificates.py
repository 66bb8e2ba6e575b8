"""Certificates and packets of a lab for tests of the receiver's path: any fields, right or wrong, really signed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from labconsole_v2x.messages import cam, denm
from labconsole_v2x.messages.btp import Port, encode_btp_b
from labconsole_v2x.messages.cam import Cam, Motion
from labconsole_v2x.messages.common_data import Position
from labconsole_v2x.messages.denm import Denm, Situation
from labconsole_v2x.messages.geonetworking import Address, PositionVector, encode_shb
from labconsole_v2x.security.encoding import (
    encode_signed_data,
    encode_signer,
    encode_to_be_signed_data,
)
from labconsole_v2x.security.issuing import issue
from labconsole_v2x.security.keys import SigningKey, SoftwareKey, integers, integers_verifier, signature_digest
from labconsole_v2x.security.reading import read_signature
from labconsole_v2x.security.structures import (
    CAM_PSID,
    DENM_PSID,
    Certificate,
    Circle,
    Curve,
    Header,
    IssuePermission,
    Permission,
    PermissionRange,
    Signature,
    Validity,
)

NOW_US = 720_000_000_000_000
"""ITS time of 2026-10-25; all certificates of the lab are valid then."""
HOUR_S = 3600
NOW_S = NOW_US // 1_000_000
LATITUDE, LONGITUDE = 470_700_000, 154_400_000
VECTOR = PositionVector(Address(bytes(6), 5), 0, LATITUDE, LONGITUDE)
CAR = Cam(1, 0, 5, Position(LATITUDE, LONGITUDE), Motion(0, 1, 0, 1))
ACCIDENT = Denm(1, 1, 1, 0, 0, 5, Position(LATITUDE, LONGITUDE), situation=Situation(2))
RANGES = (
    PermissionRange(CAM_PSID, b"\x01\xff\xfc", b"\xff\x00\x03"),
    PermissionRange(DENM_PSID, b"\x01\xff\xff\xff", b"\xff\x00\x00\x00"),
    PermissionRange(137),
)
PERMISSIONS = (
    Permission(CAM_PSID, b"\x01\x00\x00"),
    Permission(DENM_PSID, b"\x01\xff\xff\xff"),
    Permission(137, b"\x01", bitmap=False),
)


@dataclass(frozen=True)
class Holder:
    """A certificate and its private key."""

    certificate: Certificate
    key: SoftwareKey


def certify(issuer: Holder | None, curve: Curve = Curve.P256, **fields: Any) -> Holder:
    """Issue a certificate, self-signed without an issuer; it is valid for two hours around `NOW_US` by default."""
    key = SoftwareKey.generate(curve)
    fields = {"validity": Validity(NOW_S - HOUR_S, NOW_S + HOUR_S), "verification_key": key.public_key} | fields
    signer, authority = (issuer.key, issuer.certificate) if issuer else (key, None)
    return Holder(issue(signer, issuer=authority, **fields), key)


def root_authority(curve: Curve = Curve.P256, **fields: Any) -> Holder:
    """Issue a root CA's certificate, which may issue authorities that issue tickets."""
    fields = {"name": "RCA", "issue_permissions": (IssuePermission(RANGES, min_chain=2),)} | fields
    return certify(None, curve, validity=Validity(NOW_S - 24 * HOUR_S, NOW_S + 24 * HOUR_S), **fields)


def ticket_authority(root: Holder, curve: Curve = Curve.P256, **fields: Any) -> Holder:
    """Issue an authorization authority's certificate."""
    validity = Validity(NOW_S - 12 * HOUR_S, NOW_S + 12 * HOUR_S)
    fields = {"name": "AA", "issue_permissions": (IssuePermission(RANGES),), "validity": validity} | fields
    return certify(root, curve, **fields)


def ticket(authority: Holder, curve: Curve = Curve.P256, **fields: Any) -> Holder:
    """Issue an authorization ticket for CAM without special containers, all DENMs, and SPATEM."""
    return certify(authority, curve, **({"permissions": PERMISSIONS} | fields))


def cam_payload(message: Cam = CAR) -> bytes:
    """Return a CAM in BTP-B and GeoNetworking, as it is signed."""
    return encode_shb(VECTOR, encode_btp_b(Port.CAM, cam.encode(message)))


def denm_payload(message: Denm = ACCIDENT) -> bytes:
    """Return a DENM in BTP-B and GeoNetworking, as it is signed."""
    return encode_shb(VECTOR, encode_btp_b(Port.DENM, denm.encode(message)))


def signed(
    signer: Holder, header: Header, payload: bytes | None = None, *, digest: bool = False, **changes: Any
) -> bytes:
    """Sign a packet; `changes`: `certificates` (octets) and `hash_name` other than the right ones."""
    if payload is None:
        payload = denm_payload() if header.psid == DENM_PSID else cam_payload()
    hash_name = changes.get("hash_name", signer.key.curve.hash_name)
    tbs = encode_to_be_signed_data(payload, header)
    certificates = changes.get("certificates", (signer.certificate.octets,))
    identifier = encode_signer(certificates, signer.certificate.hashed_id8 if digest else None)
    to_sign = signature_digest(signer.key.curve.hash_name, tbs, signer.certificate.canonical)
    return encode_signed_data(hash_name, tbs, identifier, signer.key.sign_digest(to_sign))


def signed_cam(signer: Holder, time_us: int = NOW_US, *, digest: bool = False, **header: Any) -> bytes:
    """Sign a car's CAM."""
    return signed(signer, Header(CAM_PSID, time_us, **header), digest=digest)


def signed_denm(signer: Holder, time_us: int = NOW_US, **header: Any) -> bytes:
    """Sign a DENM about an accident."""
    header = {"location": (LATITUDE, LONGITUDE, 0)} | header
    return signed(signer, Header(DENM_PSID, time_us, **header))


def spoiled(packet: bytes) -> bytes:
    """Return a packet with another last octet, which is one of the signature."""
    return packet[:-1] + bytes((packet[-1] ^ 1,))


def signature_of(key: SigningKey, digest: bytes) -> Signature:
    """The signature of a digest, with its numbers."""
    signature, _ = read_signature(key.sign_digest(digest), 0)
    return signature


def verify_digest(key: ec.EllipticCurvePublicKey, signature: Signature, digest: bytes) -> bool:
    """Whether a signature of a digest of 32 or 48 octets is valid; the curves are not compared."""
    return integers_verifier(key)(*integers(signature), digest)


GRAZ = Circle(LATITUDE, LONGITUDE, 10_000)
CARAVAN = CAR._replace(position=Position(LATITUDE + 10_000_000, LONGITUDE))
"""A CAM of a car 111 km north of Graz."""
