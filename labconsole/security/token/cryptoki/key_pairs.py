"""Generates RSA and EC key pairs in a token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_der_public_key
from pkcs11 import Attribute, Key, KeyType, MechanismFlag, PrivateKey, PublicKey, Session
from pkcs11.types import SignMixin
from pkcs11.util.ec import encode_ec_public_key, encode_named_curve_parameters
from pkcs11.util.rsa import encode_rsa_public_key

from labconsole.security.token.cryptoki.module_errors import translated_errors
from labconsole.security.token.mechanisms import KeyKind

_USES = MechanismFlag.SIGN | MechanismFlag.VERIFY
_EC_PARAMETERS = {Attribute.EC_PARAMS: encode_named_curve_parameters("secp256r1")}
_RSA_BITS = {KeyKind.RSA_2048: 2048, KeyKind.RSA_3072: 3072, KeyKind.RSA_4096: 4096}


class SigningKey(PrivateKey, SignMixin):
    """The type of python-pkcs11 for a private key that may sign."""


@dataclass(frozen=True)
class KeyPair:
    """A key pair in a token: its handles, valid as long as their session, and its public key outside."""

    kind: KeyKind
    public_key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey
    public_handle: PublicKey
    private_handle: SigningKey

    def destroy(self) -> None:
        """Remove both keys from the token. Raises TokenError."""
        with translated_errors("destroy a key pair", self.private_handle.session.token.label):
            self.private_handle.destroy()
            self.public_handle.destroy()


def generate(session: Session, kind: KeyKind, *, extractable: bool, label: str = "", stored: bool = False) -> KeyPair:
    """A new key pair for signatures (PKCS#11 v2.40: C_GenerateKeyPair).

    Args:
        session: Read-write session of a token, logged in.
        kind: RSA takes by chance 0.1 to 10 s, by its size; P-256 takes 0.3 ms.
        extractable: Whether the private key may be wrapped (CKA_EXTRACTABLE). It is sensitive in any case.
        label: CKA_LABEL of both keys.
        stored: Token objects, which outlive the session and cost an fsync each (8 to 160 ms); else session objects.

    Raises:
        TokenError: the token is full, gone, or cannot make such keys.
    """
    private = {
        Attribute.PRIVATE: True,
        Attribute.SENSITIVE: True,
        Attribute.EXTRACTABLE: extractable,
        Attribute.DERIVE: False,
    }
    with translated_errors(f"generate a key pair {kind}", session.token.label):
        if key_type(kind) is KeyType.EC:
            curve = session.create_domain_parameters(KeyType.EC, _EC_PARAMETERS, local=True)
            made = curve.generate_keypair(label=label, store=stored, capabilities=_USES, private_template=private)
        else:
            made = session.generate_keypair(
                KeyType.RSA, _RSA_BITS[kind], label=label, store=stored, capabilities=_USES, private_template=private
            )
        public, handle = made
        return KeyPair(kind, public_key_of(public), public, signing_key(handle, kind))


def signing_key(handle: Key, kind: KeyKind) -> SigningKey:
    """A private key that was just generated in the token, ready to sign.

    python-pkcs11 would query its type from the token at the first signature: 25 us of a signing thread.
    """
    key = cast(SigningKey, handle)
    key.key_type = key_type(kind)
    return key


def key_type(kind: KeyKind) -> KeyType:
    """CKA_KEY_TYPE of keys of this kind."""
    return KeyType.RSA if kind in _RSA_BITS else KeyType.EC


def public_key_of(handle: PublicKey) -> rsa.RSAPublicKey | ec.EllipticCurvePublicKey:
    """The public key of a token object (0.02 ms). Raises PKCS11Error."""
    encoded = encode_ec_public_key(handle) if handle.key_type is KeyType.EC else encode_rsa_public_key(handle)
    return cast(rsa.RSAPublicKey | ec.EllipticCurvePublicKey, load_der_public_key(encoded))
