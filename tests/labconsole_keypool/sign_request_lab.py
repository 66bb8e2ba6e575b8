"""A CA and a signer's certificate made with keys in software, and a reader of SignResponses, for tests."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from lxml import etree

from labconsole_keypool.messages.certificate_fields import CertificateFields
from labconsole_keypool.messages.safe_xml import NAMESPACES

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class LabCA:
    """A CA that signs whatever it is given."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls) -> LabCA:
        """A new one with a P-256 key."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Test CA")])
        builder = _builder(name, name, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        return cls(key, builder.sign(key, hashes.SHA256()))

    def issue(self, key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey, fields: CertificateFields) -> x509.Certificate:
        """A certificate for `key` with these fields."""
        builder = _builder(fields.subject, self.certificate.subject, key)
        for extension, critical in fields.extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(self.key, hashes.SHA256())


@dataclass(frozen=True)
class Answer:
    """The content of a SignResponse."""

    request_id: str | None
    profile: str | None
    major: str
    message: str | None
    chain: tuple[x509.Certificate, ...]
    signatures: tuple[tuple[str | None, str, bytes, bytes], ...]
    """Of each task: its name, the algorithm, what was signed, the signature."""


def read(response: bytes, chain_under: str = "dss:OptionalOutputs/csig:SignatureCertificateChain") -> Answer:
    """Read a SignResponse; the chain is under that path."""
    root = etree.fromstring(response)
    assert root.tag == f"{{{NAMESPACES['dss']}}}SignResponse"
    certificates = root.findall(f"{chain_under}/csig:X509Certificate", NAMESPACES)
    tasks = root.findall("dss:SignatureObject/dss:Other/csig:SignTasks/csig:SignTaskData", NAMESPACES)
    return Answer(
        root.get("RequestID"),
        root.get("Profile"),
        root.findtext("dss:Result/dss:ResultMajor", namespaces=NAMESPACES),
        root.findtext("dss:Result/dss:ResultMessage", namespaces=NAMESPACES),
        tuple(x509.load_der_x509_certificate(base64.b64decode(element.text)) for element in certificates),
        tuple(map(_task, tasks)),
    )


def _task(element: etree._Element) -> tuple[str | None, str, bytes, bytes]:
    signature = element.find("csig:Base64Signature", NAMESPACES)
    signed = element.findtext("csig:ToBeSignedBytes", namespaces=NAMESPACES)
    return element.get("SignTaskId"), signature.get("Type"), base64.b64decode(signed), base64.b64decode(signature.text)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key,
        serial_number=x509.random_serial_number(),
        not_valid_before=START,
        not_valid_after=START + timedelta(days=3650),
    )
