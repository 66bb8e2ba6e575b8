"""The formats of envelopes, each defined once: form, profiles, guide and construction are made from this.

A format names the types of keys that it signs with and encrypts to; with nothing named, a run takes lab keys of the
first type. Its module is imported only where it is chosen.
"""

from __future__ import annotations

import importlib
from enum import StrEnum
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

from labconsole.security.x509.key_types import TITLES, KeyType, type_of
from labconsole_amqp.envelopes.encryption_keys import EncryptionKeyType

if TYPE_CHECKING:
    from labconsole_amqp.envelopes.content_format import ContentFormat

_RSA = (KeyType.RSA_2048, KeyType.RSA_3072, KeyType.RSA_4096)
_IN_TOKENS = (*_RSA, KeyType.P_256)

METADATA = "body, sender, recipient, AMQP address, message id with sequence, creation time"
"""What every hardened format signs."""

_PKCS7 = "application/pkcs7-mime; smime-type=signed-data", "application/pkcs7-mime; smime-type=authEnveloped-data"
_CMS = "labconsole_amqp.envelopes.cms_content:CmsContent"
_KEM = "the key by ML-KEM-768 (FIPS 203, RFC 9936, RFC 9629) with HKDF-SHA256"


class EnvelopeFormat(StrEnum):
    """A format by its name in profiles and on the command line.

    Attributes:
        label: Its name in the form.
        standard: The standards that define it.
        purpose: What it is of use for.
        signs: What its signature covers.
        content_types: The media types of signed, and of signed and encrypted messages; empty without a registered one.
        signing: Types of keys that sign.
        encryption: Types of keys that bodies are encrypted to; a pinned one is the only one.
    """

    label: str
    standard: str
    purpose: str
    signs: str
    content_types: tuple[str, str]
    signing: tuple[KeyType, ...]
    encryption: tuple[KeyType | EncryptionKeyType, ...]
    _implementation: str

    def __new__(
        cls,
        name: str,
        label: str,
        standard: str,
        purpose: str,
        signs: str,
        content_types: tuple[str, str],
        signing: tuple[KeyType, ...],
        encryption: tuple[KeyType | EncryptionKeyType, ...],
        implementation: str,
    ) -> EnvelopeFormat:
        """`implementation` is the class of its content as `module:name`; empty for the source's own envelope."""
        one = str.__new__(cls, name)
        one._value_ = name
        one.label = label
        one.standard = standard
        one.purpose = purpose
        one.signs = signs
        one.content_types = content_types
        one.signing = signing
        one.encryption = encryption
        one._implementation = implementation
        return one

    SEED_2025 = (
        "seed-2025",
        "The source's tool (seed-2025)",
        "that tool: RSA PKCS#1 v1.5 with SHA-256; AES-256-CBC, RSA-OAEP with SHA-1",
        "comparison with the source; AES-CBC has no MAC, and a message can be replayed",
        "body",
        ("", ""),
        _RSA,
        _RSA,
        "",
    )
    COMPACT = (
        "compact",
        "Compact binary",
        "none; RSASSA-PSS with SHA-256, RSAES-OAEP with SHA-256 (RFC 8017), AES-256-GCM",
        "the smallest messages with RSA keys",
        METADATA,
        ("", ""),
        _RSA,
        _RSA,
        "labconsole_amqp.envelopes.binary_content:CompactContent",
    )

    CMS = (
        "cms",
        "S/MIME 4.0 (CMS)",
        "RFC 8551, RFC 5652: SignedData by RSASSA-PSS or ECDSA with SHA-256, AuthEnvelopedData (RFC 5083) by "
        "AES-256-GCM, RSAES-OAEP with SHA-256",
        "partners in general: every CMS tool reads it, `openssl cms` for one",
        METADATA,
        _PKCS7,
        (*_RSA, KeyType.P_256),
        _RSA,
        _CMS,
    )

    JOSE = (
        "jose",
        "JOSE (JWS, JWE)",
        "RFC 7515, RFC 7797: detached JWS by ES256 or PS256; RFC 7516: JWE by ECDH-ES or RSA-OAEP-256, A256GCM",
        "partners whose tools come from the web",
        METADATA,
        ("application/octet-stream", "application/jose"),
        (KeyType.P_256, *_RSA),
        (KeyType.P_256, *_RSA),
        "labconsole_amqp.envelopes.jose_content:JoseContent",
    )

    COSE = (
        "cose",
        "COSE (CBOR)",
        "RFC 9052, RFC 9053: COSE_Sign1 by ES256, metadata as CWT claims (RFC 9597); COSE_Encrypt by ECDH-ES + "
        "HKDF-256, A256GCM",
        "small payloads and narrow links",
        METADATA,
        ('application/cose; cose-type="cose-sign1"', 'application/cose; cose-type="cose-encrypt"'),
        (KeyType.P_256,),
        (KeyType.P_256,),
        "labconsole_amqp.envelopes.cose_content:CoseContent",
    )

    XML_DSIG = (
        "xml-dsig",
        "XML Signature, XML Encryption",
        "RFC 3275, exclusive canonical XML, RSASSA-PSS (RFC 9231) or ECDSA with SHA-256; XML Encryption 1.1 by "
        "AES-256-GCM, RSA-OAEP with SHA-256",
        "partners whose tools read XML alone",
        METADATA,
        ("application/xml", "application/xml"),
        (*_RSA, KeyType.P_256),
        _RSA,
        "labconsole_amqp.envelopes.xml_content:XmlContent",
    )
    ML_DSA_44 = (
        "ml-dsa-44",
        "Post-quantum: ML-DSA-44, ML-KEM-768 (CMS)",
        f"as cms, by ML-DSA-44 (FIPS 204, RFC 9882) with SHA-512; {_KEM}",
        "what post-quantum signatures and encryption will cost",
        METADATA,
        _PKCS7,
        (KeyType.ML_DSA_44,),
        (EncryptionKeyType.ML_KEM_768,),
        _CMS,
    )
    ML_DSA_65 = (
        "ml-dsa-65",
        "Post-quantum: ML-DSA-65, ML-KEM-768 (CMS)",
        f"as cms, by ML-DSA-65 (FIPS 204, RFC 9882) with SHA-512; {_KEM}",
        "the same at the higher security category (3)",
        METADATA,
        _PKCS7,
        (KeyType.ML_DSA_65,),
        (EncryptionKeyType.ML_KEM_768,),
        _CMS,
    )
    HYBRID = (
        "hybrid",
        "Hybrid: Ed25519, HPKE with ML-KEM-768 and X25519",
        "Ed25519 (RFC 8032) in the compact layout; HPKE (RFC 9180) with MLKEM768-X25519 (X-Wing), HKDF-SHA256, "
        "AES-256-GCM",
        "bodies that must stay secret for long, with small signatures of today",
        METADATA,
        ("", ""),
        (KeyType.ED25519,),
        (EncryptionKeyType.ML_KEM_768_X25519,),
        "labconsole_amqp.envelopes.binary_content:HybridContent",
    )

    @property
    def is_hardened(self) -> bool:
        """Whether it signs the metadata of a message, and protects against replays."""
        return bool(self._implementation)

    @property
    def pinned_key(self) -> EncryptionKeyType | None:
        """The type of key that bodies are encrypted to, where it is pinned by file; None: it is in a certificate."""
        (first, *_) = self.encryption
        return first if isinstance(first, EncryptionKeyType) else None

    @property
    def token_type(self) -> KeyType | None:
        """The first type of its signing keys that a PKCS#11 token has; None: it has none of them."""
        return next((type for type in self.signing if type in _IN_TOKENS), None)

    def signs_with(self, public_key: PublicKeyTypes) -> bool:
        """Whether messages can be signed by the private key of such a public key."""
        return self._uses(public_key, self.signing)

    def encrypts_to(self, public_key: PublicKeyTypes) -> bool:
        """Whether bodies can be encrypted to such a key of a certificate."""
        return self._uses(public_key, self.encryption)

    def content_format(self) -> type[ContentFormat]:
        """The class that protects and opens its content; hardened formats only."""
        module, _, name = self._implementation.partition(":")
        found: type[ContentFormat] = getattr(importlib.import_module(module), name)
        return found

    def _uses(self, public_key: PublicKeyTypes, types: tuple[KeyType | EncryptionKeyType, ...]) -> bool:
        if not self.is_hardened:  # RSA keys of any length, as before there were other formats
            return isinstance(public_key, RSAPublicKey)
        return type_of(public_key) in types


HARDENED = tuple(format for format in EnvelopeFormat if format.is_hardened)
POOLED = (EnvelopeFormat.CMS, EnvelopeFormat.JOSE, EnvelopeFormat.COSE, EnvelopeFormat.XML_DSIG)
"""Formats in which each message may have another key of a token: it names the key that signs it."""
PINNED = tuple(format for format in EnvelopeFormat if format.pinned_key is not None)


def key_titles(types: tuple[KeyType | EncryptionKeyType, ...]) -> str:
    """Types of keys in a sentence: `RSA or ECDSA P-256`."""
    *first, last = dict.fromkeys(_title(type) for type in types)
    return f"{', '.join(first)} or {last}" if first else last


def _title(type: KeyType | EncryptionKeyType) -> str:
    if isinstance(type, EncryptionKeyType):
        return f"{type.label} (by file)"
    return "RSA" if type in _RSA else TITLES[type]
