"""The signature algorithms that a sign request may ask for, by their XML signature identifiers (RFC 6931)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from labconsole.security.token.mechanisms import KeyKind
from labconsole_keypool.messages.safe_xml import SignRequestError

_2001 = "http://www.w3.org/2001/04/xmldsig-more#"
_2007 = "http://www.w3.org/2007/05/xmldsig-more#"


@dataclass(frozen=True, slots=True)
class SignatureAlgorithm:
    """One signature algorithm: RSA with PKCS #1 v1.5 or PSS (RFC 8017), or ECDSA (FIPS 186-4), and its hash.

    PSS takes MGF1 with the same hash, and a salt as long as a digest (RFC 6931, 2.3.9 and 2.3.10).
    """

    uri: str
    key_kind: KeyKind
    """The kind of key that it takes; of RSA keys, the pool's smallest."""
    hash: hashes.HashAlgorithm
    pss: bool = False

    def serves(self, kind: KeyKind) -> bool:
        """Whether keys of `kind` sign with it: the service keeps to its own size of RSA keys."""
        return (kind is KeyKind.P_256) == (self.key_kind is KeyKind.P_256)

    def sign(self, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, data: bytes) -> bytes:
        """The signature of `data` as XML signatures hold it: of ECDSA r and s, each as long as the curve's order.

        Raises:
            TypeError: the key is of another kind.
            TokenError: the token that holds the key refuses.
        """
        if isinstance(key, rsa.RSAPrivateKey) and self.serves(KeyKind.RSA_2048):
            return key.sign(data, self._padding(), self.hash)
        if isinstance(key, ec.EllipticCurvePrivateKey) and self.serves(KeyKind.P_256):
            r, s = decode_dss_signature(key.sign(data, ec.ECDSA(self.hash)))
            size = _order_bytes(key.curve)
            return r.to_bytes(size, "big") + s.to_bytes(size, "big")
        raise TypeError(f"{self.uri} signs with a {self.key_kind} key, not with {type(key).__name__}")

    def verify(self, key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey, signature: bytes, data: bytes) -> None:
        """Check a signature that `sign` has made.

        Raises:
            InvalidSignature: it is not of this key and these data.
            TypeError: the key is of another kind.
        """
        if isinstance(key, rsa.RSAPublicKey) and self.serves(KeyKind.RSA_2048):
            key.verify(signature, data, self._padding(), self.hash)
        elif isinstance(key, ec.EllipticCurvePublicKey) and self.serves(KeyKind.P_256):
            size = _order_bytes(key.curve)
            r, s = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
            key.verify(encode_dss_signature(r, s), data, ec.ECDSA(self.hash))
        else:
            raise TypeError(f"{self.uri} is verified with a {self.key_kind} key, not with {type(key).__name__}")

    def _padding(self) -> padding.AsymmetricPadding:
        if self.pss:
            return padding.PSS(padding.MGF1(self.hash), padding.PSS.DIGEST_LENGTH)
        return padding.PKCS1v15()


def _rsa(uri: str, algorithm: hashes.HashAlgorithm, pss: bool = False) -> SignatureAlgorithm:
    return SignatureAlgorithm(uri, KeyKind.RSA_2048, algorithm, pss)


def _ecdsa(uri: str, algorithm: hashes.HashAlgorithm) -> SignatureAlgorithm:
    return SignatureAlgorithm(uri, KeyKind.P_256, algorithm)


ECDSA_SHA256 = _ecdsa(f"{_2001}ecdsa-sha256", hashes.SHA256())
"""The algorithm of the source's sample request (Appendix A)."""

RSA_SHA256 = _rsa(f"{_2001}rsa-sha256", hashes.SHA256())

ALGORITHMS: Mapping[str, SignatureAlgorithm] = {
    algorithm.uri: algorithm
    for algorithm in (
        RSA_SHA256,
        _rsa(f"{_2001}rsa-sha384", hashes.SHA384()),
        _rsa(f"{_2001}rsa-sha512", hashes.SHA512()),
        _rsa(f"{_2007}sha256-rsa-MGF1", hashes.SHA256(), pss=True),
        _rsa(f"{_2007}sha384-rsa-MGF1", hashes.SHA384(), pss=True),
        _rsa(f"{_2007}sha512-rsa-MGF1", hashes.SHA512(), pss=True),
        _rsa(f"{_2007}rsa-pss", hashes.SHA256(), pss=True),
        ECDSA_SHA256,
        _ecdsa(f"{_2001}ecdsa-sha384", hashes.SHA384()),
        _ecdsa(f"{_2001}ecdsa-sha512", hashes.SHA512()),
    )
}
"""By identifier. Without SHA-1, which is no longer allowed for signatures."""


def algorithm_of(uri: str) -> SignatureAlgorithm:
    """The algorithm with this identifier.

    Raises:
        SignRequestError: there is none; the sentence lists the known ones.
    """
    found = ALGORITHMS.get(uri)
    if found is None:
        raise SignRequestError(
            f"The sign request asks for the signature algorithm {uri[:100]!r}, which this service has not:"
            f" ask for one of {', '.join(ALGORITHMS)}."
        )
    return found


def default_for(kind: KeyKind) -> SignatureAlgorithm:
    """The algorithm of a request that names none: SHA-256 with PKCS #1 v1.5, or with ECDSA."""
    return ECDSA_SHA256 if kind is KeyKind.P_256 else RSA_SHA256


def _order_bytes(curve: ec.EllipticCurve) -> int:
    return (curve.key_size + 7) // 8
