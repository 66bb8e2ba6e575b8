"""Signed files: CMS SignedData (RFC 5652) with one signer and signed attributes, created and verified.

Algorithms: RSA (RFC 3370, PKCS #1 v1.5), ECDSA (RFC 5753), Ed25519 (RFC 8419), ML-DSA (RFC 9882). A key in a token
signs like any other: only its `sign` is called.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from asn1crypto import algos, cms, core, pem, tsp
from asn1crypto import x509 as asn1_x509
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, mldsa, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.errors import BadInput
from labconsole.security.x509 import parsing
from labconsole.security.x509.extensions import extension_of
from labconsole.security.x509.key_types import PrivateKey

_HASHES: Mapping[str, hashes.HashAlgorithm] = {
    "sha256": hashes.SHA256(),
    "sha384": hashes.SHA384(),
    "sha512": hashes.SHA512(),
}
_ML_DSA: Mapping[str, type] = {
    "2.16.840.1.101.3.4.3.17": mldsa.MLDSA44PublicKey,
    "2.16.840.1.101.3.4.3.18": mldsa.MLDSA65PublicKey,
    "2.16.840.1.101.3.4.3.19": mldsa.MLDSA87PublicKey,
}
"""RFC 9882, 3; asn1crypto has no names for them, but pyHanko gives it some."""


@dataclass(frozen=True)
class SignatureAlgorithm:
    """A signature scheme: `name` as asn1crypto knows it (or an OID), `arguments` for `sign` and `verify`."""

    name: str
    digest_name: str
    arguments: tuple[Any, ...]
    title: str

    def identifier(self) -> algos.SignedDigestAlgorithm:
        """The identifier of a signer information."""
        return algos.SignedDigestAlgorithm({"algorithm": self.name})

    def digest(self, content: bytes) -> bytes:
        """The message digest of `content`."""
        return hashlib.new(self.digest_name, content).digest()

    def sign(self, key: PrivateKey, data: bytes) -> bytes:
        """The signature of `data`."""
        make: Callable[..., bytes] = key.sign
        return make(data, *self.arguments)

    def verified(self, public_key: Any, signature: bytes, data: bytes) -> bool:
        """Whether `signature` is that of `data` by `public_key`, which is of this algorithm's type."""
        try:
            public_key.verify(signature, data, *self.arguments)
        except InvalidSignature:
            return False
        return True


def algorithm_for(public_key: object) -> SignatureAlgorithm:
    """The signature scheme for such a key. Raises BadInput: there is none."""
    match public_key:
        case rsa.RSAPublicKey():
            return _rsa("rsassa_pkcs1v15", "sha256")
        case ec.EllipticCurvePublicKey():
            return _ecdsa("sha384" if public_key.curve.key_size > 256 else "sha256")
        case ed25519.Ed25519PublicKey():
            return _ed25519("sha512")
    for oid, kind in _ML_DSA.items():
        if isinstance(public_key, kind):
            return _ml_dsa(oid, "sha512")
    raise BadInput("This type of key signs no files here: use RSA, ECDSA, Ed25519 or ML-DSA.")


def algorithm_named(
    identifier: algos.SignedDigestAlgorithm, digest_name: str, public_key: object
) -> SignatureAlgorithm:
    """The signature scheme that `identifier` and `public_key` name. Raises BadInput: unknown, weak, mismatch."""
    name, oid = identifier["algorithm"].native, identifier["algorithm"].dotted
    if digest_name in _HASHES:
        match public_key:
            case rsa.RSAPublicKey() if name in ("rsassa_pkcs1v15", f"{digest_name}_rsa"):
                return _rsa(name, digest_name)
            case ec.EllipticCurvePublicKey() if name == f"{digest_name}_ecdsa":
                return _ecdsa(digest_name)
            case ed25519.Ed25519PublicKey() if name == "ed25519":
                return _ed25519(digest_name)
        if oid in _ML_DSA and isinstance(public_key, _ML_DSA[oid]):
            return _ml_dsa(oid, digest_name)
    raise BadInput(f"The signed file is signed by {name} with {digest_name}, which is not accepted: ask for another.")


def _rsa(name: str, digest_name: str) -> SignatureAlgorithm:
    return SignatureAlgorithm(
        name, digest_name, (padding.PKCS1v15(), _HASHES[digest_name]), f"RSA with {_title(digest_name)}"
    )


def _ecdsa(digest_name: str) -> SignatureAlgorithm:
    return SignatureAlgorithm(
        f"{digest_name}_ecdsa", digest_name, (ec.ECDSA(_HASHES[digest_name]),), f"ECDSA with {_title(digest_name)}"
    )


def _ed25519(digest_name: str) -> SignatureAlgorithm:
    return SignatureAlgorithm("ed25519", digest_name, (), "Ed25519")


def _ml_dsa(oid: str, digest_name: str) -> SignatureAlgorithm:
    return SignatureAlgorithm(oid, digest_name, (), f"ML-DSA-{_ML_DSA[oid].__name__[5:7]}")


def _title(digest_name: str) -> str:
    return f"SHA-{digest_name[3:]}"


_MOST_CERTIFICATES = 100
_AS_SET = b"\x31"
"""Signed attributes are signed with the tag of a SET, but encoded with [0] in the message (RFC 5652, 5.4)."""
_DAMAGED = "The signed file is damaged, or is not CMS SignedData: ask for it again."


@dataclass(frozen=True)
class SignedMessage:
    """A parsed CMS SignedData."""

    content: bytes
    certificates: tuple[x509.Certificate, ...]
    """The certificates in the message; that makes none of them trusted."""
    signer: x509.Certificate
    """The one of `certificates` that the signer information names."""
    signing_time: datetime | None
    """Signing time by the signer; aware, UTC."""
    signature_algorithm: str
    """Title of the signature scheme, as in "ECDSA with SHA-256"."""


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
    """The parsed CMS file `data` (DER or PEM), unverified. Raises BadInput."""
    return _parse(data).message


def verify(data: bytes) -> SignedMessage:
    """The parsed CMS file `data` (DER or PEM), if its signature is that of its signer's certificate.

    Whether the signer is trusted is for the caller to judge. Raises BadInput.
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
    """The signed attributes as they were received, except for their tag."""


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
    """The certificates of the message, each exactly as it was received."""
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
    """Binds the signature to exactly this certificate (RFC 5035), not to another one with the same key or serial."""
    return tsp.ESSCertIDv2({"cert_hash": hashlib.sha256(_der(certificate)).digest()})


def _check_bound(value: tsp.SigningCertificateV2, signer: x509.Certificate) -> None:
    first = value["certs"][0]
    digest = hashlib.new(first["hash_algorithm"]["algorithm"].native, _der(signer)).digest()
    if not hmac.compare_digest(first["cert_hash"].native, digest):
        raise BadInput("The signed file was signed for another certificate than the one that it brings: do not use it.")


def _der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.DER)
