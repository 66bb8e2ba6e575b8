"""CMS as S/MIME 4.0 uses it (RFC 8551, RFC 5652): SignedData with signed attributes, then AuthEnvelopedData (RFC 5083).

The signed content is a MIME entity, whose header carries the metadata; its body is the payload. Signatures: RSASSA-PSS
(RFC 4056), ECDSA (RFC 5753) or ML-DSA (RFC 9882). Bodies are encrypted by AES-256-GCM (RFC 5084); its key goes to the
recipient by RSAES-OAEP with SHA-256 (RFC 3560), or by ML-KEM-768 (RFC 9936, in the KEMRecipientInfo of RFC 9629).

Signer and recipient are named by their subject key identifiers; certificates, which both ends have, are left out.
Written and read here without a general ASN.1 library, since that takes longer than the cryptography.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from itertools import product
from time import gmtime, strftime
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap
from cryptography.x509 import SubjectKeyIdentifier

from labconsole.security.x509.key_types import KeyType
from labconsole_amqp.envelopes.content_format import (
    Content,
    ContentFormat,
    ContentKeys,
    RefusedError,
    VerifiedContent,
    decryption_failed,
    text_of,
)
from labconsole_amqp.envelopes.der import (
    CONTEXT_0,
    CONTEXT_0_PRIMITIVE,
    INTEGER,
    NULL,
    OCTET_STRING,
    OID,
    SEQUENCE,
    SET,
    UTC_TIME,
    DerError,
    Element,
    oid,
    read,
    tlv,
)
from labconsole_amqp.wire.protected_message import SignedMetadata
from labconsole_amqp.wire.sign_encrypt import Outcome

_DATA, _SIGNED_DATA = oid("1.2.840.113549.1.7.1"), oid("1.2.840.113549.1.7.2")
_AUTH_ENVELOPED_DATA = oid("1.2.840.113549.1.9.16.1.23")
_CONTENT_TYPE, _MESSAGE_DIGEST = oid("1.2.840.113549.1.9.3"), oid("1.2.840.113549.1.9.4")
_SIGNING_TIME = oid("1.2.840.113549.1.9.5")
_VERSIONS = {True: b"\x03", False: b"\x01"}
"""Of SignedData and SignerInfo: with a subject key identifier, or issuer and serial number (RFC 5652, 5.1, 5.3)."""
_AS_SET = b"\x31"
"""Signed attributes are signed with the tag of a SET, but encoded with [0] in the message (RFC 5652, 5.4)."""


def _algorithm(dotted: str, *parameters: bytes) -> bytes:
    return tlv(SEQUENCE, oid(dotted), *parameters)


_NULL = tlv(NULL)
_SHA256_FORMS = tuple(_algorithm("2.16.840.1.101.3.4.2.1", *parameters) for parameters in ((), (_NULL,)))
"""Without parameters, as it should be written, and with NULL, as it may be (RFC 5754, 2)."""
_SHA512_FORMS = tuple(_algorithm("2.16.840.1.101.3.4.2.3", *parameters) for parameters in ((), (_NULL,)))
_MGF1_FORMS = tuple(_algorithm("1.2.840.113549.1.1.8", hash) for hash in _SHA256_FORMS)


def _pss(hash: bytes, mgf: bytes) -> bytes:
    salt = tlv(INTEGER, b"\x20")
    parameters = tlv(SEQUENCE, tlv(CONTEXT_0, hash), tlv(CONTEXT_0 + 1, mgf), tlv(CONTEXT_0 + 2, salt))
    return _algorithm("1.2.840.113549.1.1.10", parameters)


def _oaep(hash: bytes, mgf: bytes) -> bytes:
    return _algorithm("1.2.840.113549.1.1.7", tlv(SEQUENCE, tlv(CONTEXT_0, hash), tlv(CONTEXT_0 + 1, mgf)))


_HASH_PAIRS = tuple(product(_SHA256_FORMS, _MGF1_FORMS))
_PSS_FORMS = tuple(_pss(*pair) for pair in _HASH_PAIRS)
_OAEP_FORMS = tuple(_oaep(*pair) for pair in _HASH_PAIRS)
_SIGNATURE_FORMS = {
    KeyType.RSA_2048: _PSS_FORMS,
    KeyType.RSA_3072: _PSS_FORMS,
    KeyType.RSA_4096: _PSS_FORMS,
    KeyType.P_256: (_algorithm("1.2.840.10045.4.3.2"),),
    KeyType.ML_DSA_44: (_algorithm("2.16.840.1.101.3.4.3.17"),),
    KeyType.ML_DSA_65: (_algorithm("2.16.840.1.101.3.4.3.18"),),
}
"""Identifiers that are accepted for a type of key; the first one is written."""
_DIGESTS = {
    KeyType.ML_DSA_44: ("sha512", _SHA512_FORMS),
    KeyType.ML_DSA_65: ("sha512", _SHA512_FORMS),
}
_SHA256_DIGEST = ("sha256", _SHA256_FORMS)

_AES_256_GCM = oid("2.16.840.1.101.3.4.1.46")
_TAG_BYTES, _NONCE_BYTES, _KEY_BYTES = 16, 12, 32
_TAG_LENGTH = tlv(INTEGER, bytes((_TAG_BYTES,)))
_KEY_WRAP = OAEP(mgf=MGF1(SHA256()), algorithm=SHA256(), label=None)

_KEM_RECIPIENT = oid("1.2.840.113549.1.9.16.13.3")
_ML_KEM_768 = _algorithm("2.16.840.1.101.3.4.4.2")
_HKDF = _algorithm("1.2.840.113549.1.9.16.3.28")
_AES_256_WRAP = _algorithm("2.16.840.1.101.3.4.1.45")
_KEK_LENGTH = tlv(INTEGER, bytes((_KEY_BYTES,)))
_KEK_INFO = tlv(SEQUENCE, _AES_256_WRAP, _KEK_LENGTH)
"""CMSORIforKEMOtherInfo (RFC 9629, 5)."""

_FIELDS = ("Message-Sender", "Message-Recipient", "Message-Address", "Message-Number", "Message-Created")
_SAFE = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")
_LARGEST_NUMBER = 2**64 - 1


class CmsContent(ContentFormat):
    """SignedData in a data section; encrypted: AuthEnvelopedData, whose content is the SignedData."""

    def __init__(self, keys: ContentKeys) -> None:
        super().__init__(keys)
        names = zip(_FIELDS, (keys.sender, keys.recipient, keys.address), strict=False)
        fields = "".join(f"{field}: {quote(name, safe=_SAFE)}\r\n" for field, name in names)
        self._head = f"Content-Type: application/octet-stream\r\n{fields}".encode()
        signing = keys.signer or keys.verifier
        self._digest, self._digest_forms = _DIGESTS.get(signing.type, _SHA256_DIGEST) if signing else _SHA256_DIGEST

    def sign(self, body: bytes, metadata: SignedMetadata) -> Content:
        """The DER of a ContentInfo with SignedData."""
        signer, digest_algorithm = self.signer, self._digest_forms[0]
        numbers = b"%s: %d\r\n%s: %d\r\n\r\n" % (
            *(_FIELDS[3].encode(), metadata.message_id),
            *(_FIELDS[4].encode(), metadata.created_ms),
        )
        content = b"".join((self._head, numbers, body))
        time = strftime("%y%m%d%H%M%SZ", gmtime(metadata.created_ms / 1000)).encode()
        attributes = b"".join(
            (
                _attribute(_CONTENT_TYPE, _DATA),
                _attribute(_SIGNING_TIME, tlv(UTC_TIME, time)),
                _attribute(_MESSAGE_DIGEST, tlv(OCTET_STRING, hashlib.new(self._digest, content).digest())),
            )
        )
        signature = signer.sign(tlv(SET, attributes))
        info = tlv(
            SEQUENCE,
            tlv(INTEGER, b"\x03"),
            tlv(CONTEXT_0_PRIMITIVE, signer.subject_key_id),
            digest_algorithm,
            tlv(CONTEXT_0, attributes),
            _SIGNATURE_FORMS[signer.type][0],
            tlv(OCTET_STRING, signature),
        )
        encapsulated = tlv(SEQUENCE, _DATA, tlv(CONTEXT_0, tlv(OCTET_STRING, content)))
        signed = tlv(SEQUENCE, tlv(INTEGER, b"\x03"), tlv(SET, digest_algorithm), encapsulated, tlv(SET, info))
        return Content(tlv(SEQUENCE, _SIGNED_DATA, tlv(CONTEXT_0, signed)))

    def verify(self, content: Content) -> VerifiedContent:
        """The body, and the metadata in the header of the MIME entity. Raises RefusedError."""
        try:
            return self._verified(content.octets)
        except ValueError as error:
            raise RefusedError(Outcome.MALFORMED, f"the signed content is not CMS SignedData: {error}") from error

    def encrypt(self, signed: Content) -> bytes:
        """The DER of a ContentInfo with AuthEnvelopedData for one recipient."""
        key, nonce = os.urandom(_KEY_BYTES), os.urandom(_NONCE_BYTES)
        sealed = AESGCM(key).encrypt(nonce, signed.octets, None)
        algorithm = tlv(SEQUENCE, _AES_256_GCM, tlv(SEQUENCE, tlv(OCTET_STRING, nonce), _TAG_LENGTH))
        enveloped = tlv(
            SEQUENCE,
            tlv(INTEGER, b"\x00"),
            tlv(SET, _recipient_info(self.keys.recipient_key, key)),
            tlv(SEQUENCE, _DATA, algorithm, tlv(CONTEXT_0_PRIMITIVE, sealed[:-_TAG_BYTES])),
            tlv(OCTET_STRING, sealed[-_TAG_BYTES:]),
        )
        return tlv(SEQUENCE, _AUTH_ENVELOPED_DATA, tlv(CONTEXT_0, enveloped))

    def decrypt(self, octets: bytes) -> Content:
        """The SignedData in an AuthEnvelopedData. Raises RefusedError."""
        try:
            info = _content_of(octets, _AUTH_ENVELOPED_DATA)
            version, recipients, encrypted, mac = info.items(INTEGER, SET, SEQUENCE, OCTET_STRING)
            kind, algorithm, ciphertext = encrypted.items(OID, SEQUENCE, CONTEXT_0_PRIMITIVE)
            name, parameters = algorithm.items(OID, SEQUENCE)
            nonce, tag_length = parameters.items(OCTET_STRING, INTEGER)
            given = (version.content, kind.whole, name.whole, tag_length.whole, len(mac.content))
            if given != (b"\x00", _DATA, _AES_256_GCM, _TAG_LENGTH, _TAG_BYTES):
                raise decryption_failed()
            key = _content_key(
                recipients.only(SEQUENCE if _is_rsa(self.keys.decryption_key) else CONTEXT_0 + 4), self.keys
            )
            return Content(AESGCM(key).decrypt(nonce.content, ciphertext.content + mac.content, None))
        except (ValueError, InvalidTag, InvalidUnwrap) as error:
            raise decryption_failed() from error

    def _verified(self, octets: bytes) -> VerifiedContent:
        items = _content_of(octets, _SIGNED_DATA).items(INTEGER, SET, SEQUENCE)
        kind, wrapped = items[2].items(OID, CONTEXT_0)
        content = wrapped.only(OCTET_STRING).content
        info = items[-1].only(SEQUENCE).items(INTEGER)[:6]  # attributes that are not signed may follow
        version, sid, digest_algorithm, attributes, algorithm, signature = info
        named = sid.tag == CONTEXT_0_PRIMITIVE
        versions = items[0].content, version.content
        if kind.whole != _DATA or items[-1].tag != SET or versions != (_VERSIONS[named],) * 2:
            raise DerError("it has no signer, or another version or type of content")
        verifier = self.verifier(sid.content if named else None)
        if attributes.tag != CONTEXT_0 or signature.tag != OCTET_STRING:
            raise DerError("it has no signed attributes")
        algorithms = items[1].only(SEQUENCE).whole, digest_algorithm.whole
        if any(one not in self._digest_forms for one in algorithms):
            raise RefusedError(Outcome.MALFORMED, "its digest is not the one that the signer's key is used with")
        if algorithm.whole not in _SIGNATURE_FORMS[verifier.type]:
            raise RefusedError(Outcome.MALFORMED, "its signature algorithm is not that of the signer's key")
        if not verifier.verifies(signature.content, _AS_SET + attributes.whole[1:]):
            raise RefusedError(Outcome.SIGNATURE_WRONG)
        values = _values(attributes)
        digest = values.get(_MESSAGE_DIGEST)
        if values.get(_CONTENT_TYPE) != _DATA or digest is None:
            raise DerError("a signed attribute is missing")
        if not hmac.compare_digest(digest, tlv(OCTET_STRING, hashlib.new(self._digest, content).digest())):
            raise RefusedError(Outcome.SIGNATURE_WRONG, "the digest is of other content")
        return VerifiedContent(*_entity(content), verifier.key_id)


def _entity(content: bytes) -> tuple[bytes, SignedMetadata]:
    """Body and metadata of the signed MIME entity. Raises RefusedError."""
    head, separator, body = content.partition(b"\r\n\r\n")
    found: dict[str, str] = {}
    for line in text_of(head).split("\r\n"):
        field, colon, value = line.partition(": ")
        if not colon or field in found:
            raise RefusedError(Outcome.MALFORMED, "the header of the signed content is malformed")
        found[field] = value
    if not separator or not all(field in found for field in _FIELDS):
        raise RefusedError(Outcome.MALFORMED, "the signed content does not name sender, recipient, address and number")
    *names, number, created = (found[field] for field in _FIELDS)
    if not (number.isascii() and number.isdigit() and created.isascii() and created.isdigit() and len(created) < 16):
        raise RefusedError(Outcome.MALFORMED, "number or time in the signed content are not numbers")
    sender, recipient, address = (text_of(unquote_to_bytes(name)) for name in names)
    if len(number) > 20 or int(number) > _LARGEST_NUMBER:
        raise RefusedError(Outcome.MALFORMED, "the message number in the signed content is too large")
    return body, SignedMetadata(sender, recipient, address, int(number), int(created))


def _content_of(octets: bytes, kind: bytes) -> Element:
    """The structure in a ContentInfo of this type. Raises DerError."""
    found, wrapped = read(octets, SEQUENCE).items(OID, CONTEXT_0)[:2]
    if found.whole != kind:
        raise DerError("the content is of another type")
    return wrapped.only(SEQUENCE)


def _attribute(type: bytes, value: bytes) -> bytes:
    return tlv(SEQUENCE, type, tlv(SET, value))


def _values(attributes: Element) -> dict[bytes, bytes]:
    """The one value of each attribute by its type, both encoded. Raises DerError."""
    found: dict[bytes, bytes] = {}
    for attribute in attributes.items():
        type, values = attribute.items(OID, SET)
        if type.whole in found:
            raise DerError("a signed attribute is there twice")
        found[type.whole] = values.content
    return found


def _is_rsa(key: Any) -> bool:
    return isinstance(key, RSAPublicKey | RSAPrivateKey)


def _subject_key_id(public_key: Any) -> bytes:
    return SubjectKeyIdentifier.from_public_key(public_key).digest


def _recipient_info(public_key: Any, key: bytes) -> bytes:
    """The content-encryption key for a recipient: KeyTransRecipientInfo, or KEMRecipientInfo in [4]."""
    if _is_rsa(public_key):
        wrapped = public_key.encrypt(key, _KEY_WRAP)
        recipient = tlv(CONTEXT_0_PRIMITIVE, _subject_key_id(public_key))
        return tlv(SEQUENCE, tlv(INTEGER, b"\x02"), recipient, _OAEP_FORMS[0], tlv(OCTET_STRING, wrapped))
    shared, ciphertext = public_key.encapsulate()
    kem = tlv(
        SEQUENCE,
        tlv(INTEGER, b"\x00"),
        tlv(CONTEXT_0_PRIMITIVE, _subject_key_id(public_key)),
        _ML_KEM_768,
        tlv(OCTET_STRING, ciphertext),
        _HKDF,
        _KEK_LENGTH,
        _AES_256_WRAP,
        tlv(OCTET_STRING, aes_key_wrap(_key_encryption_key(shared), key)),
    )
    return tlv(CONTEXT_0 + 4, _KEM_RECIPIENT, kem)


def _content_key(info: Element, keys: ContentKeys) -> bytes:
    """The content-encryption key in a recipient information. Raises ValueError, InvalidUnwrap, RefusedError."""
    private_key = keys.decryption_key
    if _is_rsa(private_key):
        version, recipient, algorithm, wrapped = info.items(INTEGER)
        _require_recipient(recipient, private_key)
        if version.content != (b"\x02" if recipient.tag == CONTEXT_0_PRIMITIVE else b"\x00"):
            raise decryption_failed()
        if algorithm.whole not in _OAEP_FORMS or wrapped.tag != OCTET_STRING:
            raise decryption_failed()
        key: bytes = private_key.decrypt(wrapped.content, _KEY_WRAP)
    else:
        kind, value = info.items(OID, SEQUENCE)
        version, recipient, kem, ciphertext, kdf, kek_length, wrap, wrapped = value.items(INTEGER)
        _require_recipient(recipient, private_key)
        given = (version.content, kind.whole, kem.whole, kdf.whole, kek_length.whole, wrap.whole)
        if given != (b"\x00", _KEM_RECIPIENT, _ML_KEM_768, _HKDF, _KEK_LENGTH, _AES_256_WRAP):
            raise decryption_failed()
        key = aes_key_unwrap(_key_encryption_key(private_key.decapsulate(ciphertext.content)), wrapped.content)
    if len(key) != _KEY_BYTES:
        raise decryption_failed()
    return key


def _require_recipient(recipient: Element, private_key: Any) -> None:
    """Refuse a key identifier of another key; issuer and serial number, which others write, are left to the key."""
    if recipient.tag == CONTEXT_0_PRIMITIVE and recipient.content != _subject_key_id(private_key.public_key()):
        raise decryption_failed()


def _key_encryption_key(shared: bytes) -> bytes:
    return HKDF(SHA256(), _KEY_BYTES, salt=None, info=_KEK_INFO).derive(shared)
