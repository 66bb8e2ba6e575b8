"""The fields of a sign request are in the certificate, encoded by the standards; OpenSSL reads them."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest
from asn1crypto import core
from asn1crypto.x509 import Name
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole_keypool.messages import der
from labconsole_keypool.messages.certificate_fields import (
    AUTHENTICATION_CONTEXT,
    QC_STATEMENTS,
    SUBJECT_DIRECTORY_ATTRIBUTES,
    fields_of,
    plain_fields,
)
from labconsole_keypool.messages.safe_xml import SignRequestError
from labconsole_keypool.messages.sign_request import CertificateType, SignRequest, parse, sample
from labconsole_keypool.messages.signer_attributes import Place, SignerAttribute
from tests.labconsole_keypool.sign_request_lab import LabCA


class AuthenticationContext(core.Sequence):  # type: ignore[misc]
    """RFC 7773, 2."""

    _fields = [("contextType", core.UTF8String), ("contextInfo", core.UTF8String, {"optional": True})]  # noqa: RUF012


class AuthenticationContexts(core.SequenceOf):  # type: ignore[misc]
    """RFC 7773, 2."""

    _child_spec = AuthenticationContext


def _issued(request: SignRequest) -> x509.Certificate:
    return LabCA.make().issue(ec.generate_private_key(ec.SECP256R1()).public_key(), fields_of(request))


def _value(certificate: x509.Certificate, identifier: x509.ObjectIdentifier) -> bytes:
    extension = certificate.extensions.get_extension_for_oid(identifier)
    assert not extension.critical
    assert isinstance(extension.value, x509.UnrecognizedExtension)
    return extension.value.value


def test_the_signer_becomes_the_subject_in_the_order_asked() -> None:
    subject = _issued(parse(sample(7))).subject
    assert [(part.oid.dotted_string, part.value) for part in subject] == [
        ("2.5.4.5", "191212100007"),
        ("2.5.4.6", "SE"),
        ("2.5.4.42", "Åsa"),
        ("2.5.4.4", "Exempel"),
        ("2.5.4.3", "Åsa Exempel"),
    ]
    assert Name.load(subject.public_bytes()).native["serial_number"] == "191212100007"


def test_authentication_context_is_of_rfc_7773_and_holds_the_received_element() -> None:
    request = parse(sample())
    contexts = AuthenticationContexts.load(_value(_issued(request), AUTHENTICATION_CONTEXT), strict=True)
    assert contexts.native == [
        {"contextType": "http://id.elegnamnden.se/auth-cont/1.0/saci", "contextInfo": request.context}
    ]


@pytest.mark.parametrize(
    ("wanted", "statements"),
    [
        (CertificateType.QC, ["0.4.0.1862.1.1"]),
        (CertificateType.QC_SSCD, ["0.4.0.1862.1.1", "0.4.0.1862.1.4"]),
    ],
)
def test_qualified_certificate_has_its_statements(wanted: CertificateType, statements: list[str]) -> None:
    value = _value(_issued(parse(sample(certificate_type=wanted))), QC_STATEMENTS)
    loaded = core.SequenceOf.load(value, spec=core.SequenceOf, strict=True)
    found = [core.ObjectIdentifier.load(statement.contents).dotted for statement in loaded]
    assert found == statements


def test_a_plain_certificate_states_nothing() -> None:
    certificate = _issued(parse(sample(certificate_type=CertificateType.PKC)))
    with pytest.raises(x509.ExtensionNotFound):
        certificate.extensions.get_extension_for_oid(QC_STATEMENTS)


def test_alternative_names_go_by_their_tag_or_as_other_names() -> None:
    asked = (
        SignerAttribute(Place.SAN, "1", "a@example.org"),
        SignerAttribute(Place.SAN, "2", "example.org"),
        SignerAttribute(Place.SAN, "6", "https://example.org/a"),
        SignerAttribute(Place.SAN, "8", "1.2.3"),
        SignerAttribute(Place.SAN, "1.3.6.1.4.1.311.20.2.3", "åsa@example.org"),
    )
    request = parse(sample())
    names = _issued(replace(request, attributes=request.attributes[:1] + asked)).extensions
    found = list(names.get_extension_for_class(x509.SubjectAlternativeName).value)
    assert found == [
        x509.RFC822Name("a@example.org"),
        x509.DNSName("example.org"),
        x509.UniformResourceIdentifier("https://example.org/a"),
        x509.RegisteredID(x509.ObjectIdentifier("1.2.3")),
        x509.OtherName(x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2.3"), core.UTF8String("åsa@example.org").dump()),
    ]


def test_directory_attributes_have_the_types_of_rfc_3739() -> None:
    asked = (
        SignerAttribute(Place.SDA, "1.3.6.1.5.5.7.9.1", "1912-12-12"),
        SignerAttribute(Place.SDA, "1.3.6.1.5.5.7.9.2", "Malmö"),
        SignerAttribute(Place.SDA, "1.3.6.1.5.5.7.9.4", "SE"),
    )
    request = parse(sample())
    value = _value(_issued(replace(request, attributes=request.attributes[:1] + asked)), SUBJECT_DIRECTORY_ATTRIBUTES)
    found = []
    for attribute in core.SequenceOf.load(value, spec=core.Sequence, strict=True):
        kind = core.ObjectIdentifier.load(attribute[0].dump()).dotted
        held = core.SetOf.load(attribute[1].dump(), spec=core.Any)[0].parse()
        found.append((kind, type(held), str(held.native)))
    assert found == [
        ("1.3.6.1.5.5.7.9.1", core.GeneralizedTime, "1912-12-12 12:00:00+00:00"),
        ("1.3.6.1.5.5.7.9.2", core.UTF8String, "Malmö"),
        ("1.3.6.1.5.5.7.9.4", core.PrintableString, "SE"),
    ]


def test_openssl_reads_the_certificate() -> None:
    pem = _issued(parse(sample())).public_bytes(Encoding.PEM)
    output = subprocess.run(
        ["openssl", "x509", "-noout", "-text", "-nameopt", "utf8,sep_comma_plus"],
        input=pem,
        capture_output=True,
        check=True,
    ).stdout.decode()
    assert "CN=Åsa Exempel" in output
    assert "email:asa.exempel@requester.example" in output
    assert "1.2.752.201.5.1" in output
    assert "qcStatements" in output


@pytest.mark.parametrize(
    ("attribute", "sentence"),
    [
        (SignerAttribute(Place.RDN, "2.5.4.6", "Sweden"), "attribute '2.5.4.6' (rdn) cannot be used in a certificate"),
        (SignerAttribute(Place.RDN, "2.5.4.5", "№ 5"), "it has characters other than"),
        (
            SignerAttribute(Place.RDN, "serialNumber", "5"),
            "(rdn) cannot be used in a certificate: it is named by no object identifier",
        ),
        (SignerAttribute(Place.RDN, "9.9.9", "5"), "attribute '9.9.9' (rdn)"),
        (SignerAttribute(Place.SAN, "1", "Åsa <a@example.org>"), "attribute '1' (san)"),
        (SignerAttribute(Place.SAN, "4", "CN=a"), "its tag is none of 1, 2, 6, 8"),
        (SignerAttribute(Place.SAN, "8", "a.b"), "no object identifier"),
        (SignerAttribute(Place.RDN, "2.5.4.46", "Å"), "it has characters other than"),
        (SignerAttribute(Place.RDN, "1.2.840.113549.1.9.1", "å@example.org"), "characters that are not ASCII"),
        (SignerAttribute(Place.SDA, "1.3.6.1.5.5.7.9.1", "yesterday"), "write the date as 1912-12-12"),
        (SignerAttribute(Place.SDA, "1.3.6.1.5.5.7.9.4", "Å"), "it has characters other than"),
        (SignerAttribute(Place.SDA, "x", "Å"), "attribute 'x' (sda)"),
    ],
)
def test_attribute_that_a_certificate_cannot_have_is_refused(attribute: SignerAttribute, sentence: str) -> None:
    request = parse(sample())
    with pytest.raises(SignRequestError) as refusal:
        fields_of(replace(request, attributes=(*request.attributes, attribute)))
    assert sentence in str(refusal.value)


def test_request_without_a_signer_name_is_refused() -> None:
    with pytest.raises(SignRequestError, match="names no signer"):
        fields_of(replace(parse(sample()), attributes=()))


def test_random_digests_get_a_name_by_their_number() -> None:
    assert plain_fields(17).subject.rfc4514_string() == "CN=Request 17"
    assert plain_fields(17).extensions == ()


@pytest.mark.parametrize("size", [0, 1, 127, 128, 255, 256, 65_535, 65_536])
def test_der_lengths_are_the_shortest(size: int) -> None:
    assert der.utf8("a" * size) == core.UTF8String("a" * size).dump()


@pytest.mark.parametrize("dotted", ["0.4.0.1862.1.1", "1.2.752.201.5.1", "2.5.29.9", "2.999.16384", "2.5"])
def test_der_object_identifiers(dotted: str) -> None:
    assert der.object_identifier(dotted) == core.ObjectIdentifier(dotted).dump()
