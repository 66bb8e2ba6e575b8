"""Certificates issued as TS 103 097 (clause 7) profiles them, and a lab's PKI: TLM, root CA, AA, EA and tickets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from labconsole_v2x.security.encoding import (
    YEAR_S,
    compressed,
    encode_certificate,
    encode_to_be_signed_certificate,
)
from labconsole_v2x.security.keys import SigningKey, SoftwareKey, signature_digest
from labconsole_v2x.security.scanning import scan_certificate
from labconsole_v2x.security.structures import (
    CAM_PSID,
    DENM_PSID,
    IVIM_PSID,
    MAPEM_PSID,
    PRIVATE_PSID,
    SAEM_PSID,
    SPATEM_PSID,
    Certificate,
    Curve,
    IssuePermission,
    Permission,
    PermissionRange,
    PublicKey,
    Region,
    Validity,
)

CRL_PSID, CTL_PSID, CERTIFICATE_REQUEST_PSID = 622, 624, 623
"""ITS-AIDs (TS 102 965) of the CRL, the CTL, and secured certificate requests."""

CAM_SSP = bytes.fromhex("010000")
"""EN 302 637-2, 6.2: version 1, a vehicle without a special role."""
DENM_SSP = bytes.fromhex("01ffffff")
"""EN 302 637-3, 6.2: version 1, every cause code."""
TICKET_PERMISSIONS = (Permission(CAM_PSID, CAM_SSP), Permission(DENM_PSID, DENM_SSP))
"""What a ticket may send, unless it is issued with other permissions."""
ROADSIDE_PERMISSIONS = (
    Permission(SPATEM_PSID, bytes.fromhex("01e0")),
    Permission(MAPEM_PSID, bytes.fromhex("01c0")),
    Permission(IVIM_PSID, bytes.fromhex("01000000fff8")),
    Permission(SAEM_PSID, b"\x01"),
)
"""What a road-side unit may send: TS 103 301, 5 to 7 (version, of IVIM also 24 bits of issuer, then bits of content).

SAEM (TS 102 890-1) has the version alone here.
"""
CENTRE_PERMISSIONS = (Permission(PRIVATE_PSID, b"\x01"),)
"""What an ITS-S centre may send: confirmations of traffic information."""

# TS 102 941, annex B: version 1, then a bit each for the requests and responses that an authority may sign.
CREDENTIAL_PERMISSIONS = (Permission(CERTIFICATE_REQUEST_PSID, b"\x01\xc0"),)
"""What an enrolment credential may sign: requests for enrolment and authorization."""
_ROOT_PERMISSIONS = (Permission(CRL_PSID, b"\x01"), Permission(CTL_PSID, b"\x01\x38"))
_TLM_PERMISSIONS = (Permission(CTL_PSID, b"\x01\xc8"),)
AA_PERMISSIONS = (Permission(CERTIFICATE_REQUEST_PSID, b"\x01\x32"),)
EA_PERMISSIONS = (Permission(CERTIFICATE_REQUEST_PSID, b"\x01\x0e"),)

# A bit of the mask is set where the SSP must equal the value: the version, and the bits without a meaning.
_TICKET_RANGES = (
    PermissionRange(CAM_PSID, bytes.fromhex("01fffc"), bytes.fromhex("ff0003")),
    PermissionRange(DENM_PSID, bytes.fromhex("01ffffff"), bytes.fromhex("ff000000")),
)
ROADSIDE_RANGES = (
    PermissionRange(SPATEM_PSID, bytes.fromhex("01e0"), bytes.fromhex("ff1f")),
    PermissionRange(MAPEM_PSID, bytes.fromhex("01c0"), bytes.fromhex("ff3f")),
    PermissionRange(IVIM_PSID, bytes.fromhex("01000000fff8"), bytes.fromhex("ff0000000007")),
    PermissionRange(SAEM_PSID, b"\x01", b"\xff"),
)
"""The ranges with `ROADSIDE_PERMISSIONS` in them; of IVIM those of any issuer, as in the EU's trust domain."""
CENTRE_RANGES = (PermissionRange(PRIVATE_PSID, b"\x01", b"\xff"),)
"""The range with `CENTRE_PERMISSIONS` in it."""
_REQUEST_RANGES = (PermissionRange(CERTIFICATE_REQUEST_PSID, b"\x01\xfe", b"\xff\x01"),)
_CREDENTIAL_RANGES = (PermissionRange(CERTIFICATE_REQUEST_PSID, b"\x01\xc0", b"\xff\x3f"),)
_REQUESTS_ISSUE = IssuePermission(_REQUEST_RANGES, min_chain=1, chain_range=1, enrolment=True)
EA_ISSUES = (IssuePermission(_CREDENTIAL_RANGES, application=False, enrolment=True),)
AA_ISSUES = (IssuePermission(_TICKET_RANGES),)
"""What the certificates that a lab's EA and AA issue may permit."""

ROOT_YEARS, AUTHORITY_YEARS, TICKET_S = 10, 5, 7 * 24 * 3600


def issue(
    key: SigningKey,
    verification_key: PublicKey,
    validity: Validity,
    *,
    issuer: Certificate | None = None,
    name: str = "",
    region: Region | None = None,
    assurance: int | None = None,
    permissions: Sequence[Permission] = (),
    issue_permissions: Sequence[IssuePermission] = (),
    request_permissions: Sequence[IssuePermission] = (),
    encryption_key: PublicKey | None = None,
) -> Certificate:
    """A certificate signed with `key`: self-signed where `issuer` is None, else with the issuer's key.

    What is given is issued, whether the issuer permits it or not. Raises `EncodingError` where it cannot be encoded.
    """
    encode = partial(
        encode_to_be_signed_certificate,
        name=name,
        validity=validity,
        region=region,
        assurance=assurance,
        permissions=permissions,
        issue_permissions=issue_permissions,
        request_permissions=request_permissions,
    )
    tbs = encode(verification_key=verification_key, encryption_key=encryption_key)
    # The canonical form is signed, whatever form of the keys is issued (IEEE 1609.2, 6.4.8).
    canonical_tbs = encode(
        verification_key=compressed(verification_key), encryption_key=encryption_key and compressed(encryption_key)
    )
    # The hash of the signer's key: in the signature, for an issuer's HashedId8, and in "self".
    hash_name = key.curve.hash_name
    digest = signature_digest(hash_name, canonical_tbs, issuer.canonical if issuer else b"")
    hashed_id8 = issuer.hashed_id8 if issuer else None
    return scan_certificate(encode_certificate(tbs, hashed_id8, hash_name, key.sign_digest(digest)))


def issue_tlm(start_s: int, region: Region | None = None) -> tuple[Certificate, SoftwareKey]:
    """A trust list manager (TLM) with a new key, self-signed: it signs the ECTL and issues no certificates."""
    key = SoftwareKey.generate()
    validity = Validity(start_s, start_s + ROOT_YEARS * YEAR_S)
    return issue(key, key.public_key, validity, name="Lab TLM", region=region, permissions=_TLM_PERMISSIONS), key


@dataclass(frozen=True)
class LabPki:
    """Certificates and keys of a lab: a TLM, a root CA, and under it an EA and an AA, which issues the tickets."""

    root: Certificate
    aa: Certificate
    ea: Certificate
    root_key: SoftwareKey
    aa_key: SoftwareKey
    ea_key: SoftwareKey
    aa_encryption_key: SoftwareKey
    ea_encryption_key: SoftwareKey
    tlm: Certificate
    tlm_key: SoftwareKey

    @classmethod
    def create(
        cls,
        start_s: int,
        *,
        root_curve: Curve = Curve.P256,
        authority_curve: Curve = Curve.P256,
        region: Region | None = None,
        further_ranges: Sequence[PermissionRange] = (),
    ) -> LabPki:
        """A PKI with new keys, valid from `start_s` (ITS time) for 10 years, its authorities for 5.

        The AA issues tickets for CAM, DENM and `further_ranges`, such as `ROADSIDE_RANGES`. The authorities'
        encryption keys are on P-256 whatever the curves of the others.
        """
        ranges = (*_TICKET_RANGES, *further_ranges)
        root_key = SoftwareKey.generate(root_curve)
        root = issue(
            root_key,
            root_key.public_key,
            Validity(start_s, start_s + ROOT_YEARS * YEAR_S),
            name="Lab root CA",
            region=region,
            permissions=_ROOT_PERMISSIONS,
            issue_permissions=(IssuePermission(ranges, min_chain=2), _REQUESTS_ISSUE),
        )

        def authority(
            name: str, permissions: Sequence[Permission], issues: Sequence[IssuePermission]
        ) -> tuple[Certificate, SoftwareKey, SoftwareKey]:
            key, encryption_key = SoftwareKey.generate(authority_curve), SoftwareKey.generate()
            certificate = issue(
                root_key,
                key.public_key,
                Validity(start_s, start_s + AUTHORITY_YEARS * YEAR_S),
                issuer=root,
                name=name,
                region=region,
                permissions=permissions,
                issue_permissions=issues,
                encryption_key=encryption_key.public_key,
            )
            return certificate, key, encryption_key

        aa, aa_key, aa_encryption_key = authority("Lab AA", AA_PERMISSIONS, (IssuePermission(ranges),))
        ea, ea_key, ea_encryption_key = authority("Lab EA", EA_PERMISSIONS, EA_ISSUES)
        tlm, tlm_key = issue_tlm(start_s, region)
        return cls(root, aa, ea, root_key, aa_key, ea_key, aa_encryption_key, ea_encryption_key, tlm, tlm_key)

    def ticket(
        self,
        key: PublicKey,
        start_s: int,
        *,
        duration_s: int = TICKET_S,
        permissions: Sequence[Permission] = TICKET_PERMISSIONS,
        region: Region | None = None,
        encryption_key: PublicKey | None = None,
    ) -> Certificate:
        """An authorization ticket for `key`, by default valid for a week from `start_s` on, in the AA's region.

        With an encryption key, its holder receives encrypted data.
        """
        return issue(
            self.aa_key,
            key,
            Validity(start_s, start_s + duration_s),
            issuer=self.aa,
            region=self.aa.region if region is None else region,
            permissions=permissions,
            encryption_key=encryption_key,
        )
