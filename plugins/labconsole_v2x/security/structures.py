"""The parts of signed data and certificates (IEEE 1609.2, TS 103 097), as read from received octets or to be encoded.

Times are ITS time: TAI since 2004-01-01, certificates in s, messages in us. Latitude and longitude are in 0.1
microdegree, elevation in 0.1 m.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

CAM_PSID, DENM_PSID, GN_MANAGEMENT_PSID = 36, 37, 141
"""ITS-AIDs (TS 102 965) of CAM, DENM, and GeoNetworking management (beacons)."""
SPATEM_PSID, MAPEM_PSID, IVIM_PSID, SAEM_PSID = 137, 138, 139, 540_801
"""ITS-AIDs of messages of road-side units: signal phases, lane topology, infrastructure information, services."""
PRIVATE_PSID = 0x4020
"""The first of 64 ITS-AIDs for private use, unregistered (IEEE 1609.12): a lab's own messages."""


class Curve(Enum):
    """An elliptic curve: choice in `Signature` and `PublicVerificationKey`, octets of a coordinate, and its hash."""

    P256 = ("NIST P-256", 0, 32, "sha256")
    BRAINPOOL_P256R1 = ("brainpoolP256r1", 1, 32, "sha256")
    BRAINPOOL_P384R1 = ("brainpoolP384r1", 2, 48, "sha384")
    P384 = ("NIST P-384", 3, 48, "sha384")

    def __init__(self, title: str, choice: int, size: int, hash_name: str) -> None:
        self.title = title
        self.choice = choice
        self.size = size
        self.hash_name = hash_name
        self.tag = bytes((0x80 | choice,))
        """COER's octet of the choice. It is an attribute because a table by members would hash them: 0.2 us each."""


class PointForm(Enum):
    """The choice of an `EccP256CurvePoint` or `EccP384CurvePoint`."""

    X_ONLY = 0
    COMPRESSED_Y0 = 2
    COMPRESSED_Y1 = 3
    UNCOMPRESSED = 4

    def __init__(self, choice: int) -> None:
        self.tag = bytes((0x80 | choice,))
        """COER's octet of the choice."""


@dataclass(slots=True, unsafe_hash=True)
class Point:
    """A point of a curve, or its x only; `y` has octets only where it is uncompressed.

    Every packet creates one of these, a `Signature`, a `Header` and a `SignedData`: they are values, never changed,
    but not frozen, because creating a frozen dataclass takes four times as long.
    """

    form: PointForm
    x: bytes
    y: bytes = b""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key for verification or (P-256 and brainpoolP256r1 only) encryption."""

    curve: Curve
    point: Point


@dataclass(slots=True, unsafe_hash=True)
class Signature:
    """An ECDSA signature: R as a point or its x only, and s in as many octets as the curve has."""

    curve: Curve
    r: Point
    s: bytes


@dataclass(frozen=True, slots=True)
class Permission:
    """An ITS-AID (PSID) with its service specific permissions: `bitmap` for BitmapSsp (CAM, DENM), `opaque` else."""

    psid: int
    ssp: bytes | None = None
    bitmap: bool = True


@dataclass(frozen=True, slots=True)
class PermissionRange:
    """A PSID for which certificates may be issued; None where all SSPs are allowed, else value and mask of a bitmap."""

    psid: int
    bitmap_value: bytes | None = None
    bitmap_mask: bytes | None = None


@dataclass(frozen=True, slots=True)
class IssuePermission:
    """A group of permissions to issue or request certificates: `ranges` None for all PSIDs.

    `min_chain` to `min_chain + chain_range` certificates may follow; a range of -1 sets no limit.
    """

    ranges: tuple[PermissionRange, ...] | None
    min_chain: int = 1
    chain_range: int = 0
    application: bool = True
    enrolment: bool = False


@dataclass(frozen=True, slots=True)
class Circle:
    """A circular region; radius in m."""

    latitude: int
    longitude: int
    radius: int


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A region between its north-west and south-east corners."""

    north: int
    west: int
    south: int
    east: int


Region = Circle | tuple[Rectangle, ...] | tuple[tuple[int, int], ...] | frozenset[int]
"""A circle, rectangles, corners of a polygon (latitude, longitude), or country codes (UN M49) of identified regions."""


@dataclass(frozen=True, slots=True)
class Validity:
    """The validity of a certificate: `start_s` included, `end_s` excluded, in s."""

    start_s: int
    end_s: int


@dataclass(frozen=True)
class Certificate:
    """An explicit certificate as it was received, sliced."""

    octets: bytes
    tbs: tuple[int, int]
    """Start and end in `canonical` of its ToBeSignedCertificate, whose canonical form its issuer signs (6.4.8)."""
    issuer: bytes | None
    """HashedId8 of the issuer; None where it is self-signed."""
    issuer_hash: str
    """The hash of that HashedId8, or of the self-signed certificate: "sha256" or "sha384"."""
    name: str
    validity: Validity
    region: Region | None
    assurance: int | None
    permissions: tuple[Permission, ...]
    issue_permissions: tuple[IssuePermission, ...]
    request_permissions: tuple[IssuePermission, ...]
    encryption_key: PublicKey | None
    verification_key: PublicKey
    signature: Signature
    canonical: bytes
    """Its canonical form (IEEE 1609.2, 6.4.3), which is hashed: spliced from `octets`, never re-encoded."""
    hashed_id8: bytes

    @property
    def hashed_id3(self) -> bytes:
        """The last three octets of its hash."""
        return self.hashed_id8[5:]


@dataclass(slots=True, unsafe_hash=True)
class Header:
    """HeaderInfo of signed data."""

    psid: int
    generation_time: int | None = None
    expiry_time: int | None = None
    location: tuple[int, int, int] | None = None
    """Latitude, longitude and elevation."""
    p2pcd_learning_request: bytes | None = None
    missing_crl: bytes | None = None
    """HashedId3 of the CRACA, and the CRL series in two octets."""
    encryption_key: PublicKey | None = None
    inline_p2pcd_request: tuple[bytes, ...] = ()
    requested_certificate: bytes | None = None
    """The octets of the certificate, as received."""
    unknown: bool = False
    """Whether it has fields that this console does not know (later versions of the standard)."""
    plain: bool = field(default=False, compare=False)
    """Whether it was read and has nothing but PSID and generationTime, as most: nothing else needs a check then."""


@dataclass(slots=True, unsafe_hash=True)
class SignedData:
    """Signed data as received, sliced: `tbs` is ToBeSignedData, `payload` its unsecured data."""

    hash_name: str
    tbs: bytes
    """In canonical form, which is signed: as received, but with a compressed encryption key (6.3.9)."""
    payload: bytes | None
    """None where only the hash of external data is signed, or another kind of data is inside."""
    header: Header
    digest: bytes | None
    """HashedId8 of the signer, if it is given so."""
    certificates: tuple[bytes, ...]
    """The octets of the signer's certificates, if they are included; with neither, the signer is "self"."""
    signature: Signature

    @property
    def external_hash(self) -> bytes | None:
        """The SHA-256 of external data, where nothing else is signed (6.3.7)."""
        return self.tbs[2:34] if self.tbs[:2] == b"\x20\x80" else None
