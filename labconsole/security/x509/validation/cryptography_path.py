"""Validates a path with the verifier of `cryptography`: names, constraints, key usage and signatures, but no CRLs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from cryptography.x509.oid import ExtensionOID
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    Policy,
    PolicyBuilder,
    Store,
    VerificationError,
)

from labconsole.security.x509.extensions import extension_of, is_ca
from labconsole.security.x509.validation.judgement import Answer, Opinion

SMALLEST_CURVE_BITS = 224
"""Key sizes as strong as RSA of 2,048 bits (NIST SP 800-57, 5.6.1.1)."""

_SMALLEST_RSA_BITS = 2048
_BROKEN = (hashes.MD5, hashes.SHA1)
"""Broken hashes: two different certificates can have the same signature."""


def weak_key(certificate: x509.Certificate) -> str:
    """Why the key of `certificate` is too weak; empty if it is not."""
    match certificate.public_key():
        case rsa.RSAPublicKey() as key if key.key_size < _SMALLEST_RSA_BITS:
            return f"its RSA key has {key.key_size} bits, and {_SMALLEST_RSA_BITS} is the least"
        case ec.EllipticCurvePublicKey() as key if key.key_size < SMALLEST_CURVE_BITS:
            return f"its ECDSA key has {key.key_size} bits, and {SMALLEST_CURVE_BITS} is the least"
        case dsa.DSAPublicKey():
            return "its key is for DSA, which is withdrawn (FIPS 186-5)"
    return ""


def weakness(path: Sequence[x509.Certificate]) -> str:
    """Why a key or a signature in `path` is too weak; empty if none is.

    The last certificate is trusted itself: its own signature does not matter.
    """
    for certificate in path[:-1]:
        if isinstance(certificate.signature_hash_algorithm, _BROKEN):
            return f"it is signed with {certificate.signature_hash_algorithm.name.upper()}, which can be forged"
    return next(filter(None, map(weak_key, path)), "")


Path = Sequence[x509.Certificate]
"""From the end certificate upwards."""

_CURVES = frozenset({"secp256r1", "secp384r1", "secp521r1"})
_POLICY_EXTENSIONS = frozenset(
    {
        ExtensionOID.POLICY_MAPPINGS,
        ExtensionOID.POLICY_CONSTRAINTS,
        ExtensionOID.INHIBIT_ANY_POLICY,
    }
)
_CONSTRAINED_NAMES = (x509.DNSName, x509.IPAddress, x509.RFC822Name)
"""Kinds of names to which `cryptography` applies name constraints."""


def unsupported_features(said: str, path: Path) -> str:
    """The feature of `path` that `cryptography` does not support, and so refused with the text `said`; or empty."""
    for thing in _UNSUPPORTED_FEATURES:
        if any(words in said for words in thing.words) and thing.is_in(path):
            return thing.name
    return ""


@dataclass(frozen=True)
class _UnsupportedFeature:
    name: str
    words: tuple[str, ...]
    """Parts of its error text for this feature."""
    is_in: Callable[[Path], bool]


def _other_keys(path: Path) -> bool:
    return any(_is_other(certificate) for certificate in path)


def _is_other(certificate: x509.Certificate) -> bool:
    """Whether it has, or is signed by, a strong key that is neither RSA nor ECDSA on the NIST curves."""
    match certificate.public_key():
        case rsa.RSAPublicKey() | dsa.DSAPublicKey():
            other = False
        case ec.EllipticCurvePublicKey() as key:
            other = key.curve.name not in _CURVES and key.key_size >= SMALLEST_CURVE_BITS
        case _:
            other = True
    return other or certificate.signature_hash_algorithm is None  # Ed25519, Ed448, ML-DSA


def _policies(path: Path) -> bool:
    return any(
        extension.critical and extension.oid in _POLICY_EXTENSIONS
        for certificate in path
        for extension in certificate.extensions
    )


def _constraints(path: Path) -> bool:
    return any(
        not isinstance(name, _CONSTRAINED_NAMES)
        for certificate in path
        if (limits := extension_of(certificate.extensions, x509.NameConstraints)) is not None
        for name in (*(limits.permitted_subtrees or ()), *(limits.excluded_subtrees or ()))
    )


def _names_to_compare(path: Path) -> bool:
    return any(lower.issuer.public_bytes() != upper.subject.public_bytes() for lower, upper in pairwise(path))


def _long_by_self_issued_ones(path: Path) -> bool:
    """Whether a path length is kept as RFC 5280 counts, but exceeded if self-issued certificates count as well."""
    for position, certificate in enumerate(path[1:], start=1):
        limit = _path_length(certificate)
        below = path[1:position]
        if limit is not None and sum(ca.subject != ca.issuer for ca in below) <= limit < len(below):
            return True
    return False


def _path_length(certificate: x509.Certificate) -> int | None:
    constraints = extension_of(certificate.extensions, x509.BasicConstraints)
    return None if constraints is None else constraints.path_length


_UNSUPPORTED_FEATURES = (
    _UnsupportedFeature(
        "this type of key or signature",
        ("Forbidden public key algorithm", "Forbidden signature algorithm"),
        _other_keys,
    ),
    _UnsupportedFeature("certificate policies (RFC 5280, 6.1.1)", ("unaccounted-for critical extensions",), _policies),
    _UnsupportedFeature(
        "name constraints of this kind (RFC 5280, 4.2.1.10)",
        ("unsupported name constraint", "unsupported directoryName constraint", "directoryName matching"),
        _constraints,
    ),
    _UnsupportedFeature(
        "names that are alike but not the same byte by byte (RFC 5280, 7.1)",
        ("all candidates exhausted with no interior errors",),
        _names_to_compare,
    ),
    _UnsupportedFeature(
        "that self-issued certificates do not count for a path length (RFC 5280, 4.2.1.9)",
        ("path length", "signature does not match"),
        _long_by_self_issued_ones,
    ),
)


_LONGEST_PATH = 16
"""CAs between end certificate and root."""

_CLEARER = {"all candidates exhausted with no interior errors": "an issuer on the way to a trusted CA is missing"}
"""Clearer sentences for its error texts that would not help the operator."""

_PREFIXES = (
    "validation failed: ",
    "candidates exhausted: ",
    "fatal error: ",
    "Python extension validator failed: ValueError: ",
)


class CryptographyVerifier:
    """Trusted certificates, prepared for the verifier of `cryptography`; `at` is aware."""

    def __init__(self, roots: Iterable[x509.Certificate], *, at: datetime) -> None:
        trusted = list(roots)
        builder = PolicyBuilder().time(at).max_chain_depth(_LONGEST_PATH)
        builder = builder.extension_policies(ca_policy=_authorities(), ee_policy=_end_certificates())
        self._verifier = builder.store(Store(trusted)).build_client_verifier() if trusted else None

    def judge(
        self, leaf: x509.Certificate, others: Iterable[x509.Certificate], path: Sequence[x509.Certificate]
    ) -> Opinion:
        """Judge `leaf` with `others` as possible intermediates; `path` is known to lead to a root."""
        if self._verifier is None:
            return Opinion(Answer.REFUSED, "nothing is trusted")
        try:
            self._verifier.verify(leaf, list(others))
        except VerificationError as refusal:
            said = _in_short(str(refusal))
            beyond = unsupported_features(said, path or (leaf,))
            weak = weakness(path) if beyond else ""
            if weak:  # it has not checked all keys and signatures then, and OpenSSL accepts any
                return Opinion(Answer.REFUSED, weak)
            if beyond:
                return Opinion(Answer.UNKNOWN, f"it does not know {beyond} ({said})")
            return Opinion(Answer.REFUSED, _CLEARER.get(said, said))
        return Opinion(Answer.ACCEPTED)


def _authorities() -> ExtensionPolicy:
    """RFC 5280's requirements of a CA: basicConstraints, keyCertSign if key usage is limited; nothing of WebPKI."""
    policy = ExtensionPolicy.permit_all()
    policy = policy.require_present(x509.BasicConstraints, Criticality.AGNOSTIC, None)
    policy = policy.may_be_present(x509.NameConstraints, Criticality.CRITICAL, None)
    return policy.may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, _may_sign_certificates)


def _end_certificates() -> ExtensionPolicy:
    """Adds what the verifier does not check in an end certificate, which may be a CA: its key, and its constraints."""
    policy = ExtensionPolicy.permit_all()
    policy = policy.may_be_present(x509.NameConstraints, Criticality.AGNOSTIC, _limits_a_ca)
    return policy.may_be_present(x509.BasicConstraints, Criticality.AGNOSTIC, _has_strong_key)


def _limits_a_ca(policy: Policy, certificate: x509.Certificate, constraints: x509.NameConstraints | None) -> None:
    """RFC 5280, 4.2.1.10: only CA certificates have name constraints."""
    if constraints is not None and not is_ca(certificate):
        raise ValueError("it is not a CA, and has name constraints")


def _has_strong_key(policy: Policy, certificate: x509.Certificate, constraints: x509.BasicConstraints | None) -> None:
    weak = weak_key(certificate)
    if weak:
        raise ValueError(weak)


def _may_sign_certificates(policy: Policy, certificate: x509.Certificate, usage: x509.KeyUsage | None) -> None:
    if usage is not None and not usage.key_cert_sign:
        raise ValueError("the key of the CA is not for signing certificates")


def _in_short(said: str) -> str:
    """The error text without the prefixes of all refusals, and without the dumps of structures at the end."""
    for prefix in _PREFIXES:
        said = said.removeprefix(prefix)
    for dump in (": AlgorithmIdentifier {", " (encountered processing"):
        said = said.partition(dump)[0]
    return said
