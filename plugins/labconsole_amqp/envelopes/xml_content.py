"""XML Signature (XML-DSig, RFC 3275), and XML Encryption 1.1 around it.

Signed: an enveloping `Signature`, whose one `Object` has a `Message` with the metadata as attributes and the payload in
base64. Exactly this element is signed and read, and there must be nothing else: no second reference, object or id, no
comment, processing instruction or document type. Documents are UTF-8; entities are never resolved, nothing is fetched.

Encrypted: an `EncryptedData` by AES-256-GCM, whose key RSA-OAEP (SHA-256) carries; its plaintext is the `Signature`.
Signatures are by RSASSA-PSS (SHA-256) or ECDSA (SHA-256), over exclusive canonical XML.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import os
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from lxml import etree

from labconsole.security.x509.key_types import KeyType
from labconsole_amqp.envelopes.content_format import (
    Content,
    ContentFormat,
    ContentKeys,
    RefusedError,
    VerifiedContent,
    decryption_failed,
)
from labconsole_amqp.envelopes.signing import P256_COORDINATE_BYTES, der_signature, key_id, raw_signature
from labconsole_amqp.wire.protected_message import SignedMetadata
from labconsole_amqp.wire.sign_encrypt import Outcome

_DS, _XENC = "http://www.w3.org/2000/09/xmldsig#", "http://www.w3.org/2001/04/xmlenc#"
_XENC11, _MESSAGE = "http://www.w3.org/2009/xmlenc11#", "urn:labconsole:message:1"
_C14N = "http://www.w3.org/2001/10/xml-exc-c14n#"
_SHA256 = f"{_XENC}sha256"
_AES_256_GCM, _RSA_OAEP, _MGF1 = f"{_XENC11}aes256-gcm", f"{_XENC11}rsa-oaep", f"{_XENC11}mgf1sha256"
_PSS = "http://www.w3.org/2007/05/xmldsig-more#sha256-rsa-MGF1"
_SIGNING = {
    KeyType.RSA_2048: _PSS,
    KeyType.RSA_3072: _PSS,
    KeyType.RSA_4096: _PSS,
    KeyType.P_256: "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256",
}
_PREFIXES = {"ds": _DS, "xenc": _XENC, "xenc11": _XENC11, "m": _MESSAGE}
_ATTRIBUTES = ("Address", "Created", "Number", "Recipient", "Sender")
"""In the order of canonical XML."""
_ENTITIES = (
    *(("&", "&amp;"), ("<", "&lt;"), ('"', "&quot;")),
    *(("\t", "&#x9;"), ("\n", "&#xA;"), ("\r", "&#xD;")),
)
_KEY_BYTES, _NONCE_BYTES, _TAG_BYTES = 32, 12, 16
_KEY_WRAP = OAEP(mgf=MGF1(SHA256()), algorithm=SHA256(), label=None)
_LARGEST_NUMBER = 2**64 - 1
_MOST_TAGS, _MOST_QUOTES = 200, 400
"""In a document: what is not verified yet must not take many times its size in memory."""
_ENCRYPTED = (
    f'<xenc:EncryptedData xmlns:xenc="{_XENC}" Type="{_XENC}Element">'
    f'<xenc:EncryptionMethod Algorithm="{_AES_256_GCM}"/>'
    f'<ds:KeyInfo xmlns:ds="{_DS}"><xenc:EncryptedKey><xenc:EncryptionMethod Algorithm="{_RSA_OAEP}">'
    f'<ds:DigestMethod Algorithm="{_SHA256}"/><xenc11:MGF xmlns:xenc11="{_XENC11}" Algorithm="{_MGF1}"/>'
    "</xenc:EncryptionMethod><ds:KeyInfo><ds:KeyName>%s</ds:KeyName></ds:KeyInfo><xenc:CipherData><xenc:CipherValue>%s"
    "</xenc:CipherValue></xenc:CipherData></xenc:EncryptedKey></ds:KeyInfo><xenc:CipherData><xenc:CipherValue>%s"
    "</xenc:CipherValue></xenc:CipherData></xenc:EncryptedData>"
)


@lru_cache(maxsize=64)
def _tag(name: str) -> str:
    """The name of an element as lxml has it, for `prefix:name`."""
    prefix, _, local = name.partition(":")
    return f"{{{_PREFIXES[prefix]}}}{local}"


class XmlError(ValueError):
    """A document that has not the one structure that is accepted."""


class XmlContent(ContentFormat):
    """An enveloping `Signature`; encrypted: `EncryptedData`."""

    def __init__(self, keys: ContentKeys) -> None:
        super().__init__(keys)
        signing = keys.signer or keys.verifier
        assert signing is not None
        self._algorithm = _SIGNING[signing.type]

    def sign(self, body: bytes, metadata: SignedMetadata) -> Content:
        """The document, whose parts are written in their canonical form."""
        values = (
            *(_attribute(metadata.address), f'"{metadata.created_ms}"', f'"{metadata.message_id}"'),
            *(_attribute(metadata.recipient), _attribute(metadata.sender)),
        )
        attributes = "".join(f" {name}={value}" for name, value in zip(_ATTRIBUTES, values, strict=True))
        head = f' Id="message"><m:Message xmlns:m="{_MESSAGE}"{attributes}><m:Body>'.encode()
        inner = b"".join((head, _encode(body), b"</m:Body></m:Message></ds:Object>"))
        namespace = f' xmlns:ds="{_DS}"'.encode()
        digest = _encode(hashlib.sha256(b"<ds:Object" + namespace + inner).digest()).decode()
        info = (
            f'><ds:CanonicalizationMethod Algorithm="{_C14N}"></ds:CanonicalizationMethod>'
            f'<ds:SignatureMethod Algorithm="{self._algorithm}"></ds:SignatureMethod><ds:Reference URI="#message">'
            f'<ds:Transforms><ds:Transform Algorithm="{_C14N}"></ds:Transform></ds:Transforms>'
            f'<ds:DigestMethod Algorithm="{_SHA256}"></ds:DigestMethod><ds:DigestValue>{digest}</ds:DigestValue>'
            "</ds:Reference></ds:SignedInfo>"
        ).encode()
        signature = self.signer.sign(b"<ds:SignedInfo" + namespace + info)
        if self.signer.type is KeyType.P_256:
            signature = raw_signature(signature)
        return Content(
            b"".join(
                (
                    *(b"<ds:Signature", namespace, b"><ds:SignedInfo", info, b"<ds:SignatureValue>"),
                    *(
                        _encode(signature),
                        b"</ds:SignatureValue><ds:KeyInfo><ds:KeyName>",
                        self.signer.key_id.hex().encode(),
                    ),
                    *(b"</ds:KeyName></ds:KeyInfo><ds:Object", inner, b"</ds:Signature>"),
                )
            )
        )

    def verify(self, content: Content) -> VerifiedContent:
        """The payload, and the attributes of the signed message. Raises RefusedError."""
        try:
            return self._verified(content.octets)
        except XmlError as error:
            raise RefusedError(Outcome.MALFORMED, f"the signed content is not as expected: {error}") from error

    def encrypt(self, signed: Content) -> bytes:
        """The encrypted document."""
        recipient: RSAPublicKey = self.keys.recipient_key
        key, nonce = os.urandom(_KEY_BYTES), os.urandom(_NONCE_BYTES)
        wrapped = _encode(recipient.encrypt(key, _KEY_WRAP)).decode()
        sealed = _encode(nonce + AESGCM(key).encrypt(nonce, signed.octets, None)).decode()
        return (_ENCRYPTED % (key_id(recipient).hex(), wrapped, sealed)).encode()

    def decrypt(self, octets: bytes) -> Content:
        """The signed document in an encrypted one. Raises RefusedError."""
        private_key: RSAPrivateKey = self.keys.decryption_key
        try:
            root = _document(octets, _XENC, "EncryptedData")
            method, info, data = _children(root, "xenc:EncryptionMethod", "ds:KeyInfo", "xenc:CipherData")
            (encrypted_key,) = _children(info, "xenc:EncryptedKey")
            wrap, name, wrapped = _children(encrypted_key, "xenc:EncryptionMethod", "ds:KeyInfo", "xenc:CipherData")
            given = [_algorithm(one) for one in (method, wrap, *_children(wrap, "ds:DigestMethod", "xenc11:MGF"))]
            if given != [_AES_256_GCM, _RSA_OAEP, _SHA256, _MGF1] or root.get("Type") not in (None, f"{_XENC}Element"):
                raise decryption_failed()
            if _text_in(name, "ds:KeyName") != key_id(private_key.public_key()).hex():
                raise decryption_failed()
            sealed = _decode(_text_in(data, "xenc:CipherValue"))
            key = private_key.decrypt(_decode(_text_in(wrapped, "xenc:CipherValue")), _KEY_WRAP)
            if len(key) != _KEY_BYTES or len(sealed) < _NONCE_BYTES + _TAG_BYTES:
                raise decryption_failed()
            return Content(AESGCM(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None))
        except (ValueError, InvalidTag) as error:
            raise decryption_failed() from error

    def _verified(self, octets: bytes) -> VerifiedContent:
        root = _document(octets, _DS, "Signature")
        info, value, key_info, signed = _children(root, "ds:SignedInfo", "ds:SignatureValue", "ds:KeyInfo", "ds:Object")
        verifier = self.verifier(_key_id(_text_in(key_info, "ds:KeyName")))
        digest_value = self._digest_value(info, signed)
        signature = _decode(_text(value))
        if verifier.type is KeyType.P_256:
            if len(signature) != 2 * P256_COORDINATE_BYTES:
                raise RefusedError(Outcome.SIGNATURE_WRONG)
            signature = der_signature(signature)
        if not verifier.verifies(signature, _canonical(info)):
            raise RefusedError(Outcome.SIGNATURE_WRONG)
        if not hmac.compare_digest(_decode(digest_value), hashlib.sha256(_canonical(signed)).digest()):
            raise RefusedError(Outcome.SIGNATURE_WRONG, "the digest is of other content")
        return VerifiedContent(*_message(signed), verifier.key_id)

    def _digest_value(self, info: Any, signed: Any) -> str:
        """The digest of the object in `SignedInfo`. Raises XmlError: it does not sign exactly the object."""
        names = "ds:CanonicalizationMethod", "ds:SignatureMethod", "ds:Reference"
        method, algorithm, reference = _children(info, *names)
        transforms, digest, value = _children(reference, "ds:Transforms", "ds:DigestMethod", "ds:DigestValue")
        (transform,) = _children(transforms, "ds:Transform")
        given = [_algorithm(one) for one in (method, algorithm, transform, digest)]
        if given != [_C14N, self._algorithm, _C14N, _SHA256] or any(map(len, (method, algorithm, transform, digest))):
            raise XmlError("its algorithms are not those of the signer's key")
        identifier = signed.get("Id")
        if not identifier or dict(reference.attrib) != {"URI": f"#{identifier}"} or len(signed.attrib) != 1:
            raise XmlError("its reference is not to its object")
        return _text(value)


def _key_id(name: str) -> bytes:
    """The key id in a name; empty, which no key has, where it is of another form."""
    try:
        key_id = bytes.fromhex(name)
    except ValueError:
        return b""
    return key_id if key_id.hex() == name else b""


def _message(signed: Any) -> tuple[bytes, SignedMetadata]:
    """Payload and metadata of the signed object. Raises XmlError."""
    (message,) = _children(signed, "m:Message")
    if sorted(message.attrib) != list(_ATTRIBUTES):
        raise XmlError("the message does not name sender, recipient, address, number and time")
    address, created, number, recipient, sender = (message.get(name) for name in _ATTRIBUTES)
    for text, longest in ((created, 15), (number, 20)):
        if not (text.isascii() and text.isdigit() and len(text) <= longest):
            raise XmlError("number or time are not numbers")
    if int(number) > _LARGEST_NUMBER:
        raise XmlError("its number is too large")
    body = _decode(_text_in(message, "m:Body"))
    return body, SignedMetadata(sender, recipient, address, int(number), int(created))


def _document(octets: bytes, namespace: str, name: str) -> Any:
    """The root of a document. Raises XmlError: it is malformed, or has what could mislead."""
    try:
        octets.decode()
    except UnicodeDecodeError as error:
        raise XmlError("it is not UTF-8") from error
    if b"<!" in octets or b"<?" in octets:  # no CDATA, comment, document type, declaration or instruction
        raise XmlError("it has a declaration, a comment or a processing instruction")
    if octets.count(b"<") > _MOST_TAGS or octets.count(b'"') + octets.count(b"'") > _MOST_QUOTES:
        raise XmlError("it has more elements or attributes than a message")
    parser = etree.XMLParser(
        encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, ns_clean=False
    )
    try:
        root = etree.fromstring(octets, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise XmlError("it is not well-formed") from error
    if root.tag != f"{{{namespace}}}{name}":
        raise XmlError("it is another document")
    return root


def _children(element: Any, *names: str) -> list[Any]:
    """The elements in one, which have exactly these names, with nothing but white space around. Raises XmlError."""
    found = list(element)
    if [one.tag for one in found] != [_tag(name) for name in names]:
        raise XmlError(f"it has not exactly {', '.join(names)} in {etree.QName(element).localname}")
    if any(text and text.strip(" \t\r\n") for text in (element.text, *(one.tail for one in found))):
        raise XmlError(f"there is text in {etree.QName(element).localname}")
    return found


def _algorithm(element: Any) -> str:
    """The algorithm that an element names. Raises XmlError."""
    if list(element.attrib) != ["Algorithm"]:
        raise XmlError("an algorithm is not named")
    return str(element.get("Algorithm"))


def _text_in(element: Any, name: str) -> str:
    """The text in the one element in another, which has this name. Raises XmlError."""
    return _text(_children(element, name)[0])


def _text(element: Any) -> str:
    """The text of an element without others in it. Raises XmlError."""
    if len(element):
        raise XmlError("there are elements in a text")
    return element.text or ""


def _canonical(element: Any) -> bytes:
    """Exclusive canonical XML. Raises XmlError: it has none (a relative namespace, say)."""
    try:
        octets: bytes = etree.tostring(element, method="c14n", exclusive=True, with_comments=False, with_tail=False)
    except (etree.LxmlError, ValueError) as error:
        raise XmlError("it has no canonical form") from error
    return octets


def _attribute(text: str) -> str:
    """A value in quotes, as canonical XML has it."""
    for character, entity in _ENTITIES:
        text = text.replace(character, entity)
    return f'"{text}"'


def _encode(octets: bytes) -> bytes:
    return binascii.b2a_base64(octets, newline=False)


def _decode(text: str) -> bytes:
    """The octets of base64, which may be in lines. Raises XmlError."""
    joined = "".join(text.split()) if not text.isalnum() else text
    try:
        octets = binascii.a2b_base64(joined, strict_mode=True)
    except ValueError as error:
        raise XmlError("it is not base64") from error
    if _encode(octets[-(len(octets) % 3 or 3) :])[-4:] != joined.encode()[-4:]:
        raise XmlError("it is not base64 in its one form")
    return octets
