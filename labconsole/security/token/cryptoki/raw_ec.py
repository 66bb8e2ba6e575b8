"""Raw ECDSA and ECDH in a token, as V2X stations use them: digests, signatures and secrets in fixed-size octets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pkcs11 import KDF, Attribute, KeyType, Mechanism, MechanismFlag, ObjectClass, PrivateKey, PublicKey, Session
from pkcs11.types import DeriveMixin, SignMixin, VerifyMixin
from pkcs11.util.ec import encode_named_curve_parameters

from labconsole.security.token.cryptoki.key_pairs import public_key_of
from labconsole.security.token.cryptoki.module_errors import translated_errors

_USES = MechanismFlag.SIGN | MechanismFlag.VERIFY
_OIDS = {
    "secp256r1": "1.2.840.10045.3.1.7",
    "secp384r1": "1.3.132.0.34",
    "brainpoolP256r1": "1.3.36.3.3.2.8.1.1.7",
    "brainpoolP384r1": "1.3.36.3.3.2.8.1.1.11",
}


class _PrivateHandle(PrivateKey, SignMixin):
    """The type of python-pkcs11 for a private key that may sign."""


class _DerivingHandle(PrivateKey, DeriveMixin):
    """The type of python-pkcs11 for a private key that may derive."""


class _PublicHandle(PublicKey, VerifyMixin):
    """The type of python-pkcs11 for a public key that may verify."""


@dataclass(frozen=True)
class RawECKey:
    """A private key of a session object, and its public key outside; lost with its session."""

    public_key: ec.EllipticCurvePublicKey
    handle: _PrivateHandle

    def sign(self, digest: bytes) -> bytes:
        """r and s, each as long as the curve's order (CKM_ECDSA; PKCS#11 v2.40 current, 2.3.1). Raises TokenError."""
        with translated_errors("sign", self.handle.session.token.label):
            return self.handle.sign(digest, mechanism=Mechanism.ECDSA)


@dataclass(frozen=True)
class RawECPublicKey:
    """A public key that was imported as a session object."""

    handle: _PublicHandle

    def verify(self, digest: bytes, signature: bytes) -> bool:
        """Whether `signature`, r and s, is that of the digest, checked in the token. Raises TokenError."""
        with translated_errors("verify a signature", self.handle.session.token.label):
            return bool(self.handle.verify(digest, signature, mechanism=Mechanism.ECDSA))

    def destroy(self) -> None:
        """Remove the key from the token. Raises TokenError."""
        with translated_errors("destroy a public key", self.handle.session.token.label):
            self.handle.destroy()


@dataclass(frozen=True)
class RawECDHKey:
    """A private key of a session object that agrees on secrets, and its public key outside; lost with its session."""

    public_key: ec.EllipticCurvePublicKey
    handle: _DerivingHandle

    def shared_secret(self, peer: ec.EllipticCurvePublicKey) -> bytes:
        """x of the shared point, which leaves the token (CKM_ECDH1_DERIVE, CKD_NULL). Raises TokenError."""
        point = peer.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        with translated_errors("agree on a secret", self.handle.session.token.label):
            secret = self.handle.derive_key(
                KeyType.GENERIC_SECRET,
                self.public_key.curve.key_size,
                mechanism=Mechanism.ECDH1_DERIVE,
                mechanism_param=(KDF.NULL, None, point),
                store=False,
                template={Attribute.SENSITIVE: False, Attribute.EXTRACTABLE: True},
            )
            value: bytes = secret[Attribute.VALUE]
            secret.destroy()
        return value


def generate_ec(session: Session, curve: ec.EllipticCurve) -> RawECKey:
    """A new key on this curve for the time of the session, which signs; it cannot be extracted.

    Raises TokenError: the token has no such curve, is full or gone.
    """
    public_key, handle = _generated(session, curve, _USES)
    return RawECKey(public_key, cast(_PrivateHandle, handle))


def generate_ecdh(session: Session, curve: ec.EllipticCurve) -> RawECDHKey:
    """A new key on this curve for the time of the session, which agrees on secrets. As `generate_ec` otherwise."""
    public_key, handle = _generated(session, curve, MechanismFlag.DERIVE)
    return RawECDHKey(public_key, cast(_DerivingHandle, handle))


def _generated(
    session: Session, curve: ec.EllipticCurve, uses: MechanismFlag
) -> tuple[ec.EllipticCurvePublicKey, PrivateKey]:
    private = {Attribute.PRIVATE: True, Attribute.SENSITIVE: True, Attribute.EXTRACTABLE: False}
    with translated_errors(f"generate a key pair on {curve.name}", session.token.label):
        domain = session.create_domain_parameters(KeyType.EC, {Attribute.EC_PARAMS: _encoded(curve)}, local=True)
        public, key = domain.generate_keypair(store=False, capabilities=uses, private_template=private)
        key.key_type = KeyType.EC  # python-pkcs11 would ask the token for it at the first signature
        return cast(ec.EllipticCurvePublicKey, public_key_of(public)), key


def import_ec(session: Session, public_key: ec.EllipticCurvePublicKey) -> RawECPublicKey:
    """The public key as an object of the session. Raises TokenError: no such curve, full or gone."""
    point = public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    template = {
        Attribute.CLASS: ObjectClass.PUBLIC_KEY,
        Attribute.KEY_TYPE: KeyType.EC,
        Attribute.TOKEN: False,
        Attribute.VERIFY: True,
        Attribute.EC_PARAMS: _encoded(public_key.curve),
        Attribute.EC_POINT: b"\x04%c%b" % (len(point), point),  # in a DER octet string
    }
    with translated_errors(f"import a public key on {public_key.curve.name}", session.token.label):
        handle = cast(_PublicHandle, session.create_object(template))
        handle.key_type = KeyType.EC
        return RawECPublicKey(handle)


def _encoded(curve: ec.EllipticCurve) -> bytes:
    return encode_named_curve_parameters(_OIDS[curve.name])
