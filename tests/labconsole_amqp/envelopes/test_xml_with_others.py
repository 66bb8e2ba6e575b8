"""xmlsec and signxml verify every document of the envelope `xml-dsig`, xmlsec decrypts it, the console opens its own.

Signature wrapping, external entities and whatever else could make others read something that was not signed is refused.
"""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any

import pytest
import xmlsec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from lxml import etree
from signxml.algorithms import SignatureMethod
from signxml.verifier import SignatureConfiguration, XMLVerifier

from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.key_types import KeyType
from labconsole_amqp.envelopes.formats import EnvelopeFormat
from labconsole_amqp.envelopes.signing import KeySigner, key_id
from labconsole_amqp.wire.envelope import Protection, message_number
from labconsole_amqp.wire.protected_message import decode_protected, encode_protected
from labconsole_amqp.wire.sign_encrypt import Outcome
from tests.helpers.authorities import new_authority
from tests.helpers.identities import certify
from tests.labconsole_amqp.envelope_lab import ADDRESS, PAYLOAD, RECIPIENT, SENDER, Ends, ends, private_key

TYPES = (KeyType.RSA_2048, KeyType.P_256)
LENGTHS = (1, 11, 237, 42_708)
DS, MESSAGE = "http://www.w3.org/2000/09/xmldsig#", "urn:labconsole:message:1"
NAMES = {"ds": DS, "m": MESSAGE}
METHODS = {
    KeyType.RSA_2048: "http://www.w3.org/2007/05/xmldsig-more#sha256-rsa-MGF1",
    KeyType.P_256: "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256",
}


def pair(type: KeyType, protection: Protection, expected: bytes | None = None, **more: Any) -> Ends:
    return ends(EnvelopeFormat.XML_DSIG, protection, type, expected=expected, **more)


def foreign(type: KeyType, owner: str) -> Any:
    """A key of xmlsec."""
    pem = private_key(type, owner).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return xmlsec.Key.from_memory(pem, xmlsec.KeyFormat.PEM)


def verified_by_xmlsec(root: Any, type: KeyType) -> bytes:
    context = xmlsec.SignatureContext()
    context.key = foreign(type, "sender")
    context.register_id(root.find("ds:Object", NAMES), "Id")
    context.verify(root)
    text = root.findtext("ds:Object/m:Message/m:Body", namespaces=NAMES)
    return base64.b64decode(text or "")


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("names", [(SENDER, RECIPIENT), ("CN=<a>&\"b'\t", "CN=ä\u2028,O=>")])
def test_xmlsec_verifies_and_decrypts_every_document(type: KeyType, names: tuple[str, str]) -> None:
    signed = pair(type, Protection.SIGNED, sender=names[0], recipient=names[1])
    encrypted = pair(type, Protection.SIGNED_ENCRYPTED, sender=names[0], recipient=names[1])
    for sequence, length in enumerate(LENGTHS * 2):
        body = (PAYLOAD * 200)[:length]
        root = etree.fromstring(decode_protected(signed.protect(sequence, body)).content)
        assert verified_by_xmlsec(root, type) == body
        message = root.find("ds:Object/m:Message", NAMES)
        assert message is not None
        assert (message.get("Sender"), message.get("Recipient"), message.get("Address")) == (*names, ADDRESS)
        assert message.get("Number") == str(message_number(0, sequence))
        manager = xmlsec.KeysManager()
        manager.add_key(foreign(KeyType.RSA_2048, "recipient"))
        outer = etree.fromstring(decode_protected(encrypted.protect(sequence, body)).content)
        inner = xmlsec.EncryptionContext(manager).decrypt(outer)
        assert verified_by_xmlsec(inner, type) == body


@pytest.mark.parametrize("type", TYPES)
def test_signxml_verifies_every_document(type: KeyType) -> None:
    sender = pair(type, Protection.SIGNED)
    key = private_key(type, "sender")
    certificate = certify(new_authority("CA"), "sender", key.public_key(), CertificateProfile.MESSAGE_SIGNING)
    expected = SignatureConfiguration(require_x509=False, signature_methods=frozenset({SignatureMethod(METHODS[type])}))
    for sequence, length in enumerate(LENGTHS):
        content = decode_protected(sender.protect(sequence, (PAYLOAD * 200)[:length])).content
        result = XMLVerifier().verify(content, x509_cert=certificate, expect_config=expected)
        assert result.signed_xml is not None and result.signed_xml.tag == f"{{{DS}}}Object"


def template(type: KeyType, sequence: int, body: bytes, inside: str = "") -> str:
    """What a partner signs, in lines as a person would write it."""
    return f"""<Signature xmlns="{DS}">
  <SignedInfo>
    <CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/>
    <SignatureMethod Algorithm="{METHODS[type]}"/>
    <Reference URI="#x1">
      <Transforms><Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/></Transforms>
      <DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"/>
      <DigestValue/>
    </Reference>
  </SignedInfo>
  <SignatureValue/>
  <KeyInfo><KeyName>{KeySigner(private_key(type, "sender")).key_id.hex()}</KeyName></KeyInfo>
  <Object Id="x1">{inside}
    <Message xmlns="{MESSAGE}" Sender="{SENDER}" Recipient="{RECIPIENT}" Address="{ADDRESS}"
        Created="{time.time_ns() // 1_000_000}" Number="{message_number(0, sequence)}">
      <Body>{base64.encodebytes(body).decode()}</Body>
    </Message>
  </Object>
</Signature>"""


def signed_by_xmlsec(type: KeyType, text: str) -> Any:
    root = etree.fromstring(text)
    context = xmlsec.SignatureContext()
    context.key = foreign(type, "sender")
    context.register_id(root.find("ds:Object", NAMES), "Id")
    context.sign(root)
    return root


@pytest.mark.parametrize("type", TYPES)
def test_the_console_opens_what_xmlsec_signs_and_encrypts(type: KeyType) -> None:
    for sequence, body in enumerate((b"x", PAYLOAD, PAYLOAD * 50)):
        root = signed_by_xmlsec(type, template(type, sequence, body))
        octets = etree.tostring(root)
        result = pair(type, Protection.SIGNED, body).received(encode_protected(octets, b"application/xml")[0])
        assert (result.outcome, result.payload) == (Outcome.OK, body), result.reason
        sealed = encrypted_by_xmlsec(octets)
        result = pair(type, Protection.SIGNED_ENCRYPTED, body).received(encode_protected(sealed, b"")[0])
        assert (result.outcome, result.payload) == (Outcome.OK, body), result.reason


def encrypted_by_xmlsec(octets: bytes) -> bytes:
    xenc, xenc11 = "http://www.w3.org/2001/04/xmlenc#", "http://www.w3.org/2009/xmlenc11#"
    name = key_id(private_key(KeyType.RSA_2048, "recipient").public_key()).hex()
    empty = etree.fromstring(
        f"""<EncryptedData xmlns="{xenc}" Type="{xenc}Element"><EncryptionMethod Algorithm="{xenc11}aes256-gcm"/>
        <KeyInfo xmlns="{DS}"><EncryptedKey xmlns="{xenc}"><EncryptionMethod Algorithm="{xenc11}rsa-oaep">
        <DigestMethod xmlns="{DS}" Algorithm="{xenc}sha256"/><MGF xmlns="{xenc11}" Algorithm="{xenc11}mgf1sha256"/>
        </EncryptionMethod><KeyInfo xmlns="{DS}"><KeyName>{name}</KeyName></KeyInfo>
        <CipherData><CipherValue/></CipherData></EncryptedKey></KeyInfo><CipherData><CipherValue/></CipherData>
        </EncryptedData>"""
    )
    manager = xmlsec.KeysManager()
    key = foreign(KeyType.RSA_2048, "recipient")
    key.name = name
    manager.add_key(key)
    context = xmlsec.EncryptionContext(manager)
    context.key = xmlsec.Key.generate(xmlsec.KeyData.AES, 256, xmlsec.KeyDataType.SESSION)
    return bytes(etree.tostring(context.encrypt_binary(empty, octets)))


GOOD = KeyType.RSA_2048


def outcome(octets: bytes | str) -> Outcome:
    data = octets.encode() if isinstance(octets, str) else octets
    result = pair(GOOD, Protection.SIGNED).received(encode_protected(data, b"")[0])
    assert result.payload is None or result.outcome is Outcome.OK
    return result.outcome


def test_wrapped_signatures_are_refused() -> None:
    """The signed object is kept for the verifier, and another one is put where a reader would look."""
    good = etree.tostring(signed_by_xmlsec(GOOD, template(GOOD, 1, PAYLOAD))).decode()
    assert outcome(good) is Outcome.OK
    start, stop = good.index("<Object"), good.index("</Object>") + len("</Object>")
    signed = good[start:stop]
    other = signed.replace("<Body>", "<Body>AAAA")
    moved = [
        good.replace(signed, other + signed),
        good.replace(signed, signed + other),
        good.replace(signed, other.replace('Id="x1"', 'Id="x2"') + signed),
        good.replace(signed, other.replace("<Message", f"{signed}<Message", 1)),
        good.replace(signed, other.replace('Id="x1"', 'Id="x2"', 1).replace("<Message", f"{signed}<Message", 1)),
        good.replace(signed, signed.replace("<Message", f"{other}<Message", 1)),
        good.replace("<KeyInfo>", f"<KeyInfo>{signed}").replace(f"</KeyInfo>\n  {signed}", f"</KeyInfo>\n  {other}"),
        f"<root>{good}{other}</root>",
        good.replace(signed, other),
        good.replace("#x1", ""),
        good.replace("#x1", "#xpointer(id('x1'))"),
    ]
    for document in moved:
        assert document != good
        assert outcome(document) in (Outcome.MALFORMED, Outcome.SIGNATURE_WRONG)


def test_entities_declarations_and_comments_are_refused_and_nothing_is_fetched(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    good = etree.tostring(signed_by_xmlsec(GOOD, template(GOOD, 1, PAYLOAD))).decode()
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    hostile: list[bytes | str] = [
        f'<!DOCTYPE Signature [<!ENTITY x SYSTEM "file://{secret}">]>{good.replace("<Body>", "<Body>&x;")}',
        f'<!DOCTYPE Signature SYSTEM "http://127.0.0.1:1/x.dtd">{good}',
        f'<!DOCTYPE Signature [<!ENTITY l0 "ha">{laughs}]>{good.replace("<Body>", "<Body>&l11;")}',
        f'<?xml version="1.0"?>{good}',
        good.replace("<Body>", "<Body><!-- x -->"),
        good.replace("</Body>", "<!-- x --></Body>"),
        good.replace("<Body>", "<Body><?x y?>"),
        good.replace("<Body>", "<Body><![CDATA[").replace("</Body>", "]]></Body>"),
        good.replace("<Body>", "<Body>&undefined;"),
        good.encode("utf-16"),
        b"\xef\xbb\xbf" + b"<" + good.encode(),
        b"<a>" * 100_000,
        b"",
        b"<Signature/>",
    ]
    for document in hostile:
        assert outcome(document) is Outcome.MALFORMED, document[:80]
    assert outcome(good.replace("<Body>", "<Body><x/>")) is Outcome.SIGNATURE_WRONG


@pytest.mark.parametrize(
    "change",
    [
        ("2001/10/xml-exc-c14n#", "2006/12/xml-c14n11"),
        ("#sha256-rsa-MGF1", "#sha1-rsa-MGF1"),
        ("2007/05/xmldsig-more#sha256-rsa-MGF1", "2001/04/xmldsig-more#rsa-sha256"),
        ("2007/05/xmldsig-more#sha256-rsa-MGF1", "2001/04/xmldsig-more#hmac-sha256"),
        ("xmlenc#sha256", "xmldsig-more#md5"),
        ("<Transform Algorithm", f'<Transform Algorithm="{DS}enveloped-signature"/><Transform Algorithm'),
        ('URI="#x1"', 'URI="#x1" Type="http://www.w3.org/2000/09/xmldsig#Object"'),
        ('Id="x1"', 'Id="x1" MimeType="text/plain"'),
        (' Address="labconsole"', ""),
        (' Number="', ' Number="9'),
        (' Number="', ' Number="-'),
    ],
)
def test_other_algorithms_and_forms_are_refused(change: tuple[str, str]) -> None:
    text = etree.tostring(signed_by_xmlsec(GOOD, template(GOOD, 1, PAYLOAD))).decode()
    changed = text.replace(*change)
    assert changed != text
    assert outcome(changed) in (Outcome.MALFORMED, Outcome.SIGNATURE_WRONG)


@pytest.mark.parametrize(
    "change",
    [
        ('URI="#x1"', 'URI="#x1" Type="http://www.w3.org/2000/09/xmldsig#Object"'),
        ('Id="x1"', 'Id="x1" MimeType="text/plain"'),
        (f' Address="{ADDRESS}"', ""),
        (' Address="', ' Other="x" Address="'),
        (' Number="', ' Number="99999999999999999'),
        (' Number="', ' Number="-'),
        ("<Body>", "<Body><x/>"),
        ("<Body>", "text<Body>"),
        ("</Message>", "</Message><Message/>"),
        ("</Object>", '</Object><Object Id="x2"/>'),
    ],
)
def test_other_forms_are_refused_even_with_a_good_signature(change: tuple[str, str]) -> None:
    text = template(GOOD, 1, PAYLOAD)
    changed = text.replace(*change)
    assert changed != text
    assert outcome(etree.tostring(signed_by_xmlsec(GOOD, changed))) is Outcome.MALFORMED
