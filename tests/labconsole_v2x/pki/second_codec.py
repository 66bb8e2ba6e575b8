"""TS 102 941 by asn1tools, a second opinion on the octets of its messages, with what they need of IEEE 1609.2."""

from __future__ import annotations

from functools import cache
from typing import Any

import asn1tools

_MODULE = """
Messages DEFINITIONS AUTOMATIC TAGS ::= BEGIN
Data ::= SEQUENCE { version INTEGER (1..1), content Content }
Content ::= CHOICE {
  enrolmentRequest NULL, enrolmentResponse EnrolmentResponse, authorizationRequest AtRequest,
  authorizationResponse AtResponse, crl Crl, ctlTlm Ctl, ctlRca Ctl,
  validationRequest ValidationRequest, validationResponse ValidationResponse, caRequest CaRequest, ... }
CaRequest ::= SEQUENCE { publicKeys PublicKeys, attributes Attributes, ... }
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
  certIssuePermissions SEQUENCE OF Group OPTIONAL, ... }
Name ::= CHOICE { linkage NULL, name UTF8String, binaryId OCTET STRING, none NULL, ... }
Validity ::= SEQUENCE { start INTEGER (0..4294967295), duration Duration }
Duration ::= CHOICE {
  microseconds INTEGER (0..65535), milliseconds INTEGER (0..65535), seconds INTEGER (0..65535),
  minutes INTEGER (0..65535), hours INTEGER (0..65535), sixtyHours INTEGER (0..65535), years INTEGER (0..65535) }
Region ::= CHOICE { circle Circle, rectangles NULL, polygon NULL, countries SEQUENCE OF Country, ... }
Country ::= CHOICE { countryOnly INTEGER (0..65535), countryAndRegions NULL, ... }
Circle ::= SEQUENCE { center Place, radius INTEGER (0..65535) }
Place ::= SEQUENCE { latitude INTEGER (-900000000..900000001), longitude INTEGER (-1799999999..1800000001) }
PsidSsp ::= SEQUENCE { psid INTEGER (0..MAX), ssp Ssp OPTIONAL }
Ssp ::= CHOICE { opaque OCTET STRING, ..., bitmapSsp OCTET STRING }
PublicKeys ::= SEQUENCE { verificationKey VerificationKey, encryptionKey EncryptionKey OPTIONAL }
VerificationKey ::= CHOICE { p256 Point, brainpoolP256r1 Point, ..., brainpoolP384r1 Point384, p384 Point384 }
EncryptionKey ::= SEQUENCE {
  algorithm ENUMERATED { aes128Ccm(0), ... }, key CHOICE { p256 Point, brainpoolP256r1 Point, ... } }
Point ::= CHOICE {
  xOnly OCTET STRING (SIZE(32)), fill NULL, y0 OCTET STRING (SIZE(32)), y1 OCTET STRING (SIZE(32)),
  uncompressed NULL }
Point384 ::= CHOICE {
  xOnly OCTET STRING (SIZE(48)), fill NULL, y0 OCTET STRING (SIZE(48)), y1 OCTET STRING (SIZE(48)),
  uncompressed NULL }
Crl ::= SEQUENCE {
  version INTEGER, thisUpdate Time32, nextUpdate Time32, entries SEQUENCE OF HashedId8, ... }
Ctl ::= SEQUENCE {
  version INTEGER, nextUpdate Time32, isFullCtl BOOLEAN, ctlSequence INTEGER (0..255),
  ctlCommands SEQUENCE OF Command, ... }
Command ::= CHOICE { add Entry, delete Deletion, ... }
Entry ::= CHOICE { rca RcaEntry, ea EaEntry, aa AaEntry, dc DcEntry, tlm TlmEntry, ... }
Deletion ::= CHOICE { cert HashedId8, dc IA5String, ... }
RcaEntry ::= SEQUENCE { selfsignedRootCa Certificate, successorTo Certificate OPTIONAL }
EaEntry ::= SEQUENCE { eaCertificate Certificate, aaAccessPoint IA5String, itsAccessPoint IA5String OPTIONAL }
AaEntry ::= SEQUENCE { aaCertificate Certificate, accessPoint IA5String }
DcEntry ::= SEQUENCE { url IA5String, cert SEQUENCE OF HashedId8 }
TlmEntry ::= SEQUENCE {
  selfSignedTLMCertificate Certificate, successorTo Certificate OPTIONAL, accessPoint IA5String }
Time32 ::= INTEGER (0..4294967295)
HashedId8 ::= OCTET STRING (SIZE(8))
Certificate ::= SEQUENCE {
  version INTEGER (3..3), type ENUMERATED { explicit(0), implicit(1), ... }, issuer Issuer, toBeSigned Tbs,
  signature Signature OPTIONAL }
Issuer ::= CHOICE {
  sha256AndDigest HashedId8, self ENUMERATED { sha256(0), ..., sha384(1) }, ..., sha384AndDigest HashedId8 }
Tbs ::= SEQUENCE {
  id Name, cracaId OCTET STRING (SIZE(3)), crlSeries INTEGER (0..65535), validityPeriod Validity,
  region Region OPTIONAL, assuranceLevel OCTET STRING (SIZE(1)) OPTIONAL,
  appPermissions SEQUENCE OF PsidSsp OPTIONAL, certIssuePermissions SEQUENCE OF Group OPTIONAL,
  certRequestPermissions SEQUENCE OF Group OPTIONAL, canRequestRollover NULL OPTIONAL,
  encryptionKey EncryptionKey OPTIONAL, verifyKeyIndicator CHOICE { verificationKey VerificationKey, ... }, ... }
Group ::= SEQUENCE {
  subjectPermissions CHOICE { explicit SEQUENCE OF PsidSspRange, all NULL, ... }, minChainLength INTEGER DEFAULT 1,
  chainLengthRange INTEGER DEFAULT 0, eeType BIT STRING (SIZE(8)) DEFAULT '10000000'B }
PsidSspRange ::= SEQUENCE { psid INTEGER (0..MAX), sspRange SspRange OPTIONAL }
SspRange ::= CHOICE { opaque SEQUENCE OF OCTET STRING, all NULL, ..., bitmap BitmapRange }
BitmapRange ::= SEQUENCE { sspValue OCTET STRING, sspBitmask OCTET STRING }
Signature ::= CHOICE { p256 Ecdsa, brainpoolP256r1 Ecdsa, ..., brainpoolP384r1 Ecdsa384, p384 Ecdsa384 }
Ecdsa ::= SEQUENCE { rSig Point, sSig OCTET STRING (SIZE(32)) }
Ecdsa384 ::= SEQUENCE { rSig Point384, sSig OCTET STRING (SIZE(48)) }
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
