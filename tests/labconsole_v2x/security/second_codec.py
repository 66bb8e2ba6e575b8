"""IEEE 1609.2 by pycrate, a second opinion on what is encoded here and a source of octets that are not our own."""

from __future__ import annotations

from typing import Any

from pycrate_asn1dir import ITS_IEEE1609_2

_MODULE = ITS_IEEE1609_2.Ieee1609Dot2


def decode_certificate(octets: bytes) -> dict[str, Any]:
    return _decode(_MODULE.CertificateBase, octets)


def decode_data(octets: bytes) -> dict[str, Any]:
    return _decode(_MODULE.Ieee1609Dot2Data, octets)


def encode_certificate(value: dict[str, Any]) -> bytes:
    return _encode(_MODULE.CertificateBase, value)


def encode_data(value: dict[str, Any]) -> bytes:
    return _encode(_MODULE.Ieee1609Dot2Data, value)


def encode_to_be_signed_data(value: dict[str, Any]) -> bytes:
    return _encode(_MODULE.ToBeSignedData, value)


def _decode(kind: Any, octets: bytes) -> dict[str, Any]:
    kind.from_coer(octets)
    value: dict[str, Any] = kind.get_val()
    assert kind.to_coer() == octets, "not the canonical encoding of these values"
    return value


def _encode(kind: Any, value: dict[str, Any]) -> bytes:
    kind.set_val(value)
    octets: bytes = kind.to_coer()
    return octets


def certificate_value(**to_be_signed: Any) -> dict[str, Any]:
    """A certificate of an ordinary ticket, with parts of its ToBeSignedCertificate replaced."""
    return {
        "version": 3,
        "type": "explicit",
        "issuer": ("sha256AndDigest", b"issuer-1"),
        "toBeSigned": {
            "id": ("none", 0),
            "cracaId": bytes(3),
            "crlSeries": 0,
            "validityPeriod": {"start": 700_000_000, "duration": ("hours", 168)},
            "appPermissions": [{"psid": 36, "ssp": ("bitmapSsp", b"\1\0\0")}],
            "verifyKeyIndicator": ("verificationKey", ("ecdsaNistP256", ("compressed-y-1", b"x" * 32))),
        }
        | to_be_signed,
        "signature": ("ecdsaNistP256Signature", {"rSig": ("x-only", b"r" * 32), "sSig": b"s" * 32}),
    }


def signed_data_value(header: dict[str, Any] | None = None, **signed_data: Any) -> dict[str, Any]:
    """Signed data of an ordinary CAM, with parts of its header and of itself replaced."""
    data = {
        "hashId": "sha256",
        "tbsData": {
            "payload": {"data": {"protocolVersion": 3, "content": ("unsecuredData", b"payload")}},
            "headerInfo": {"psid": 36, "generationTime": 700_000_000_000_000} | (header or {}),
        },
        "signer": ("digest", b"digest-8"),
        "signature": ("ecdsaNistP256Signature", {"rSig": ("x-only", b"r" * 32), "sSig": b"s" * 32}),
    }
    return {"protocolVersion": 3, "content": ("signedData", data | signed_data)}
