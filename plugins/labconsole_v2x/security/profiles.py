"""The security profiles of TS 103 097 for CAM, DENM and other messages, and SSPs against the content of messages."""

from __future__ import annotations

from collections.abc import Iterator

from labconsole_v2x.messages.cam import Cam
from labconsole_v2x.messages.denm import Denm
from labconsole_v2x.security.structures import CAM_PSID, DENM_PSID, Permission, SignedData

CAM_SSP_BITS = {
    "cenDsrcTollingZone": (1, 0x80),
    "publicTransportContainer": (1, 0x40),
    "specialTransportContainer": (1, 0x20),
    "dangerousGoodsContainer": (1, 0x10),
    "roadWorksContainerBasic": (1, 0x08),
    "rescueContainer": (1, 0x04),
    "emergencyContainer": (1, 0x02),
    "safetyCarContainer": (1, 0x01),
    "closedLanes": (2, 0x80),
    "requestForRightOfWay": (2, 0x40),
    "requestForFreeCrossingAtATrafficLight": (2, 0x20),
    "noPassing": (2, 0x10),
    "noPassingForTrucks": (2, 0x08),
    "speedLimit": (2, 0x04),
}
"""Octet and bit of a CAM's SSP for its containers and components (EN 302 637-2 and TS 103 900, 6.2.2.2)."""

_DENM_CAUSES = (
    (1, 2, 3, 6, 9, 10, 11, 12),
    (14, 15, 17, 18, 19, 26, 27, 91),
    (92, 93, 94, 95, 96, 97, 98, 99),
    (5, 7, 28, 100),
)
DENM_SSP_BITS = {
    cause: (octet, 0x80 >> bit) for octet, causes in enumerate(_DENM_CAUSES, 1) for bit, cause in enumerate(causes)
}
"""Octet and bit of a DENM's SSP for its cause code (EN 302 637-3, 6.2.2.2; octet 4 is that of TS 103 831)."""

SSP_VERSIONS = (1, 2)
"""Versions in the first octet of the SSP: Release 1 and, with more octets, Release 2."""


def profile_faults(data: SignedData) -> tuple[str, ...]:
    """Return what breaks the security profile of the message's ITS-AID; empty where it is kept.

    TS 103 097 v2.1.1, 5.2 and 7.1.1 (CAM), 7.1.2 (DENM), 7.1.3 (others). Fields of later versions of the standard are
    not judged: a profile of that version may allow them.
    """
    header = data.header
    if header.plain and header.psid != DENM_PSID and data.payload is not None and data.digest is not None:
        return ()
    faults = []
    if header.generation_time is None:
        faults.append("generationTime is missing")
    if data.payload is None:
        faults.append("the payload is not unsecured data")
    if data.digest is None and len(data.certificates) != 1:
        faults.append("the signer is neither a digest nor one certificate")
    if header.p2pcd_learning_request is not None:
        faults.append("p2pcdLearningRequest is present")
    if header.missing_crl is not None:
        faults.append("missingCrlIdentifier is present")
    if header.psid == CAM_PSID or header.psid == DENM_PSID:
        if header.expiry_time is not None:
            faults.append("expiryTime is present")
        if header.encryption_key is not None:
            faults.append("encryptionKey is present")
        if header.psid == CAM_PSID:
            if header.location is not None:
                faults.append("generationLocation is present")
        else:
            if header.location is None:
                faults.append("generationLocation is missing")
            if data.digest is not None:
                faults.append("the signer is a digest")
            if header.inline_p2pcd_request:
                faults.append("inlineP2pcdRequest is present")
            if header.requested_certificate is not None:
                faults.append("requestedCertificate is present")
    return tuple(faults)


SspBit = tuple[int, int]
"""Octet of an SSP, and a bit in it."""


def needed_ssp_bits(message: Cam | Denm) -> dict[str, SspBit | None]:
    """Return by name the bits of the SSP that a message's contents need; None for what no bit permits."""
    if isinstance(message, Cam):
        return {name: CAM_SSP_BITS[name] for name in _cam_contents(message)}
    if message.situation is None:
        return {}
    cause = message.situation.cause
    return {f"cause code {cause}": DENM_SSP_BITS.get(cause)}


def has_ssp_bit(permission: Permission, bit: SspBit | None) -> bool:
    """Whether a bit of a permission's SSP is set."""
    ssp = _bitmap(permission)
    return bit is not None and bit[0] < len(ssp) and bool(ssp[bit[0]] & bit[1])


def is_known_ssp(permission: Permission) -> bool:
    """Whether the SSP, where there is one, is of a known version."""
    ssp = _bitmap(permission)
    return not ssp or ssp[0] in SSP_VERSIONS


def ssp_faults(permission: Permission, message: Cam | Denm) -> tuple[str, ...]:
    """Return what a message contains without the permission for it; empty where all is permitted."""
    if not is_known_ssp(permission):
        return (f"SSP of unknown version {_bitmap(permission)[0]}",)
    return tuple(name for name, bit in needed_ssp_bits(message).items() if not has_ssp_bit(permission, bit))


def _bitmap(permission: Permission) -> bytes:
    return permission.ssp if permission.bitmap and permission.ssp else b""


def _cam_contents(cam: Cam) -> Iterator[str]:
    """Yield the keys of `CAM_SSP_BITS` for what a CAM contains."""
    if cam.zones or (cam.motion is not None and cam.motion.toll_zone is not None):
        yield "cenDsrcTollingZone"
    if cam.special is not None:
        kind, components = cam.special.kind, cam.special.components
        if kind in CAM_SSP_BITS:
            yield kind
        if kind == "roadWorksContainerBasic" and "closedLanes" in components:
            yield "closedLanes"
        if kind == "emergencyContainer" and "emergencyPriority" in components:
            priority = components["emergencyPriority"][0][0]
            if priority & 0x80:
                yield "requestForRightOfWay"
            if priority & 0x40:
                yield "requestForFreeCrossingAtATrafficLight"
        if kind == "safetyCarContainer":
            if components.get("trafficRule") in ("noPassing", "noPassingForTrucks"):
                yield components["trafficRule"]
            if "speedLimit" in components:
                yield "speedLimit"
