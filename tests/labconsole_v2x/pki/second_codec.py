"""TS 102 941 by asn1tools, a second opinion on the octets of its messages; with P-256 only of IEEE 1609.2."""

from __future__ import annotations

from functools import cache
from typing import Any

import asn1tools

_MODULE = """
Messages DEFINITIONS AUTOMATIC TAGS ::= BEGIN
Data ::= SEQUENCE { version INTEGER (1..1), content Content }
Content ::= CHOICE {
  enrolmentRequest NULL, enrolmentResponse EnrolmentResponse, authorizationRequest AtRequest,
  authorizationResponse AtResponse, crl NULL, ctlTlm NULL, ctlRca NULL,
  validationRequest ValidationRequest, validationResponse ValidationResponse, caRequest NULL, ... }
EcRequest ::= SEQUENCE {
  itsId OCTET STRING, certificateFormat INTEGER (1..255), publicKeys PublicKeys, attributes Attributes, ... }
EnrolmentResponse ::= SEQUENCE {
  requestHash OCTET STRING (SIZE(16)), responseCode ENUMERATED { ok(0), cantparse(1), unknownits(6), ... }, ... }
AtRequest ::= SEQUENCE {
  publicKeys PublicKeys, hmacKey OCTET STRING (SIZE(32)), shared Shared, ecSignature EcSignature, ... }
Shared ::= SEQUENCE {
  eaId OCTET STRING (SIZE(8)), keyTag OCTET STRING (SIZE(16)), certificateFormat INTEGER (1..255),
  attributes Attributes, ... }
EcSignature ::= CHOICE { encrypted Encrypted, clear NULL }
AtResponse ::= EnrolmentResponse
ValidationRequest ::= SEQUENCE { shared Shared, ecSignature EcSignature, ... }
ValidationResponse ::= SEQUENCE {
  requestHash OCTET STRING (SIZE(16)), responseCode ENUMERATED { ok(0), cantparse(1), deniedpermissions(12), ... },
  attributes Attributes OPTIONAL, ... }
Attributes ::= SEQUENCE {
  id Name OPTIONAL, validityPeriod Validity OPTIONAL, region Region OPTIONAL,
  assuranceLevel OCTET STRING (SIZE(1)) OPTIONAL, appPermissions SEQUENCE OF PsidSsp OPTIONAL,
  certIssuePermissions NULL OPTIONAL, ... }
Name ::= CHOICE { linkage NULL, name UTF8String, binaryId OCTET STRING, none NULL, ... }
Validity ::= SEQUENCE { start INTEGER (0..4294967295), duration Duration }
Duration ::= CHOICE {
  microseconds INTEGER (0..65535), milliseconds INTEGER (0..65535), seconds INTEGER (0..65535),
  minutes INTEGER (0..65535), hours INTEGER (0..65535), sixtyHours INTEGER (0..65535), years INTEGER (0..65535) }
Region ::= CHOICE { circle Circle, rectangles NULL, polygon NULL, countries NULL, ... }
Circle ::= SEQUENCE { center Place, radius INTEGER (0..65535) }
Place ::= SEQUENCE { latitude INTEGER (-900000000..900000001), longitude INTEGER (-1799999999..1800000001) }
PsidSsp ::= SEQUENCE { psid INTEGER (0..MAX), ssp Ssp OPTIONAL }
Ssp ::= CHOICE { opaque OCTET STRING, ..., bitmapSsp OCTET STRING }
PublicKeys ::= SEQUENCE { verificationKey VerificationKey, encryptionKey EncryptionKey OPTIONAL }
VerificationKey ::= CHOICE { p256 Point, ... }
EncryptionKey ::= SEQUENCE { algorithm ENUMERATED { aes128Ccm(0), ... }, key VerificationKey }
Point ::= CHOICE {
  xOnly OCTET STRING (SIZE(32)), fill NULL, y0 OCTET STRING (SIZE(32)), y1 OCTET STRING (SIZE(32)),
  uncompressed NULL }
Encrypted ::= SEQUENCE { version INTEGER (3..3), content CHOICE { unsecured NULL, signed NULL, encrypted Ciphertexts } }
Ciphertexts ::= SEQUENCE { recipients SEQUENCE OF Recipient, ciphertext Ccm }
Recipient ::= CHOICE { psk OCTET STRING (SIZE(8)), symm NULL, cert Wrapped, signed NULL, rek NULL }
Wrapped ::= SEQUENCE { id OCTET STRING (SIZE(8)), key CHOICE { p256 Ecies, ... } }
Ecies ::= SEQUENCE { v Point, c OCTET STRING (SIZE(16)), t OCTET STRING (SIZE(16)) }
Ccm ::= CHOICE { aes128ccm SEQUENCE { nonce OCTET STRING (SIZE(12)), ciphertext OCTET STRING }, ... }
END
"""


@cache
def _compiled() -> Any:
    return asn1tools.compile_string(_MODULE, "oer")


def decode(kind: str, octets: bytes) -> Any:
    """The values of a message; its encoding by asn1tools is the same octets."""
    value = _compiled().decode(kind, octets)
    assert _compiled().encode(kind, value) == octets
    return value


def encode(kind: str, value: dict[str, Any]) -> bytes:
    """The octets of a message."""
    return bytes(_compiled().encode(kind, value))
