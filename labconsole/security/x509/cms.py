"""Signed files: CMS SignedData (RFC 5652) with one signer and signed attributes, made and verified.

Algorithms: RSA (RFC 3370, PKCS #1 v1.5), ECDSA (RFC 5753), Ed25519 (RFC 8419), ML-DSA (RFC 9882). A key in a token
signs like any other: only its `sign` is called.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from asn1crypto import algos, cms, core, pem, tsp
from asn1crypto import x509 as asn1_x509
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.security.x509 import parsing
from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.cms_algorithms import SignatureAlgorithm, algorithm_for, algorithm_named
from labconsole.security.x509.extensions import extension_of
from labconsole.security.x509.key_types import PrivateKey

_MOST_CERTIFICATES = 100
_AS_SET = b"\x31"
"""Signed attributes are signed with the tag of a SET, and stand in the message with [0] (RFC 5652, 5.4)."""
_DAMAGED = "The signed file is damaged, or is not CMS SignedData: ask for it again."


@dataclass(frozen=True)
class SignedMessage:
    """A CMS SignedData as it was read."""

    content: bytes
    certificates: tuple[x509.Certificate, ...]
    """What came along; none of them is trusted for that."""
    signer: x509.Certificate
    """The one of `certificates` that the signer information names."""
    signing_time: datetime | None
    """As the signer says; aware, UTC."""
    signature_algorithm: str
    """In words, as in "ECDSA with SHA-256"."""


def sign(
    content: bytes,
    certificate: x509.Certificate,
    key: PrivateKey,
    *,
    chain: Sequence[x509.Certificate] = (),
    at: datetime | None = None,
) -> bytes:
    """DER of a SignedData over `content` (attached, type id-data) by `key`, which belongs to `certificate`.

    `at`: the signing time (default: now). Raises BadInput if key and certificate do not belong together, or this type
    of key signs no CMS here.
    """
    public_key = key.public_key()
    if public_key != certificate.public_key():
        raise BadInput("The key does not belong to the signer's certificate: choose the one that it was issued for.")
    algorithm = algorithm_for(public_key)
    signer = asn1_x509.Certificate.load(_der(certificate))
    attributes = cms.CMSAttributes(
        [
            _attribute("content_type", "data"),
            _attribute("message_digest", algorithm.digest(content)),
            _attribute("signing_time", cms.Time("utc_time", (at or datetime.now(UTC)).replace(microsecond=0))),
            _attribute("signing_certificate_v2", tsp.SigningCertificateV2({"certs": [_bound(certificate)]})),
        ]
    )
    digest_algorithm = algos.DigestAlgorithm({"algorithm": algorithm.digest_name})
    info = cms.SignerInfo(
        {
            "version": "v1",
            "sid": cms.SignerIdentifier(
                "issuer_and_serial_number",
                cms.IssuerAndSerialNumber({"issuer": signer.issuer, "serial_number": signer.serial_number}),
            ),
            "digest_algorithm": digest_algorithm,
            "signed_attrs": attributes,
            "signature_algorithm": algorithm.identifier(),
            "signature": algorithm.sign(key, attributes.dump()),
        }
    )
    signed = cms.SignedData(
        {
            "version": "v1",
            "digest_algorithms": [digest_algorithm],
            "encap_content_info": {"content_type": "data", "content": content},
            "certificates": [asn1_x509.Certificate.load(_der(each)) for each in (certificate, *chain)],
            "signer_infos": [info],
        }
    )
    der: bytes = cms.ContentInfo({"content_type": "signed_data", "content": signed}).dump()
    return der


def read(data: bytes) -> SignedMessage:
    """What a CMS file (DER or PEM) holds; nothing of it is verified. Raises BadInput."""
    return _parse(data).message


def verify(data: bytes) -> SignedMessage:
    """What a CMS file (DER or PEM) holds, if its signature is that of its signer's certificate.

    Whether the signer is anybody whom one trusts is for the caller to judge. Raises BadInput.
    """
    parsed = _parse(data)
    if not hmac.compare_digest(parsed.digest, hashlib.new(parsed.digest_name, parsed.message.content).digest()):
        raise BadInput("The signed file was changed after it was signed: ask for it again.")
    if not parsed.algorithm.verified(parsed.message.signer.public_key(), parsed.signature, parsed.signed):
        raise BadInput("The signature of the signed file is not that of its signer's certificate: do not use it.")
    return parsed.message


@dataclass(frozen=True)
class _Parsed:
    message: SignedMessage
    digest_name: str
    digest: bytes
    algorithm: SignatureAlgorithm
    signature: bytes
    signed: bytes
    """The signed attributes as they were received, but for their tag."""


@contextmanager
def _damage_is_bad_input() -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        # asn1crypto parses on access, and reports what is malformed by any of these.
        raise BadInput(_DAMAGED) from error


def _parse(data: bytes) -> _Parsed:
    if len(data) > parsing.MAX_BYTES:
        raise BadInput(f"The signed file is longer than {parsing.MAX_BYTES:,} bytes: ask for a smaller one.")
    with _damage_is_bad_input():
        der = pem.unarmor(data)[2] if data.lstrip().startswith(b"-----BEGIN") else data
        info = cms.ContentInfo.load(der, strict=True)
        if info["content_type"].native != "signed_data":
            raise BadInput(_DAMAGED)
        signed_data = info["content"]
        content = _content(signed_data)
        certificates = _certificates(signed_data)
        infos = list(signed_data["signer_infos"])
        if len(infos) != 1:
            raise BadInput(f"The signed file has {len(infos)} signatures where one is expected: do not use it.")
        (signer_info,) = infos
        signer = _signer(signer_info["sid"], certificates)
        received = signer_info["signed_attrs"].dump()
        if not received:
            raise BadInput("The signed file has no signed attributes: ask for one that was signed with them.")
        attributes = _attributes(signer_info["signed_attrs"])
        if attributes.get("content_type", core.Void()).native != "data":
            raise BadInput(_DAMAGED)
        if "signing_certificate_v2" in attributes:
            _check_bound(attributes["signing_certificate_v2"], signer)
        digest_name = signer_info["digest_algorithm"]["algorithm"].native
        algorithm = algorithm_named(signer_info["signature_algorithm"], digest_name, signer.public_key())
        time = attributes["signing_time"].native if "signing_time" in attributes else None
        return _Parsed(
            SignedMessage(content, certificates, signer, time, algorithm.title),
            digest_name,
            attributes["message_digest"].native,
            algorithm,
            signer_info["signature"].native,
            _AS_SET + received[1:],
        )


def _content(signed_data: cms.SignedData) -> bytes:
    encapsulated = signed_data["encap_content_info"]
    content = encapsulated["content"].native
    if encapsulated["content_type"].native != "data" or content is None:
        raise BadInput("The signed file holds no content, only a signature: ask for one with the content attached.")
    return bytes(content)


def _certificates(signed_data: cms.SignedData) -> tuple[x509.Certificate, ...]:
    """Those that came along, each exactly as it was received."""
    choices = list(signed_data["certificates"])
    if len(choices) > _MOST_CERTIFICATES:
        raise BadInput(f"The signed file brings more than {_MOST_CERTIFICATES} certificates: ask for a smaller one.")
    return tuple(parsing.read_certificate(each.chosen.dump(), "A certificate in the signed file") for each in choices)


def _signer(sid: cms.SignerIdentifier, certificates: Sequence[x509.Certificate]) -> x509.Certificate:
    if sid.name == "issuer_and_serial_number":
        named = (sid.chosen["issuer"].dump(), sid.chosen["serial_number"].native)
        found = [each for each in certificates if (each.issuer.public_bytes(), each.serial_number) == named]
    else:
        found = [each for each in certificates if _key_identifier(each) == sid.native]
    if not found:
        raise BadInput("The signed file does not bring its signer's certificate: ask for one that does.")
    if len(set(found)) > 1:
        raise BadInput("Two certificates in the signed file have the serial number of its signer: do not use it.")
    return found[0]


def _key_identifier(certificate: x509.Certificate) -> bytes | None:
    identifier = extension_of(certificate.extensions, x509.SubjectKeyIdentifier)
    return None if identifier is None else identifier.digest


def _attributes(attributes: cms.CMSAttributes) -> dict[str, core.Asn1Value]:
    """The one value of each signed attribute, by its type."""
    values: dict[str, core.Asn1Value] = {}
    for attribute in attributes:
        (values[attribute["type"].native],) = attribute["values"]
    if len(values) != len(attributes):
        raise BadInput(_DAMAGED)
    return values


def _attribute(kind: str, value: object) -> cms.CMSAttribute:
    return cms.CMSAttribute({"type": kind, "values": [value]})


def _bound(certificate: x509.Certificate) -> tsp.ESSCertIDv2:
    """Binds the signature to this very certificate (RFC 5035): another one with the same key or serial is none."""
    return tsp.ESSCertIDv2({"cert_hash": hashlib.sha256(_der(certificate)).digest()})


def _check_bound(value: tsp.SigningCertificateV2, signer: x509.Certificate) -> None:
    first = value["certs"][0]
    digest = hashlib.new(first["hash_algorithm"]["algorithm"].native, _der(signer)).digest()
    if not hmac.compare_digest(first["cert_hash"].native, digest):
        raise BadInput("The signed file was signed for another certificate than the one that it brings: do not use it.")


def _der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.DER)
