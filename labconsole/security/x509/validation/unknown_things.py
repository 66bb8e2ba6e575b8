"""What the verifier of `cryptography` does not know at all: there the other library decides, and that is shown.

A refusal counts as "does not know" only if it is worded as one that follows from such a thing, *and* the thing is in
the path: every other refusal stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from cryptography.x509.oid import ExtensionOID

from labconsole.security.x509.extensions import extension_of
from labconsole.security.x509.validation.strength import SMALLEST_CURVE_BITS

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
"""Kinds of names to which it applies name constraints."""


def what_it_does_not_know(said: str, path: Path) -> str:
    """What in `path` made `cryptography` refuse with the words `said` because it does not know it; or nothing."""
    for thing in _THINGS:
        if any(words in said for words in thing.words) and thing.is_in(path):
            return thing.name
    return ""


@dataclass(frozen=True)
class _Thing:
    name: str
    words: tuple[str, ...]
    """Parts of what it says when it meets the thing."""
    is_in: Callable[[Path], bool]


def _other_keys(path: Path) -> bool:
    return any(_is_other(certificate) for certificate in path)


def _is_other(certificate: x509.Certificate) -> bool:
    """Whether it has a key, or is signed by one, that is strong and yet none of RSA and ECDSA on the NIST curves."""
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
    """Whether a path length is kept as RFC 5280 counts, and exceeded if self-issued certificates count as well."""
    for position, certificate in enumerate(path[1:], start=1):
        limit = _path_length(certificate)
        below = path[1:position]
        if limit is not None and sum(ca.subject != ca.issuer for ca in below) <= limit < len(below):
            return True
    return False


def _path_length(certificate: x509.Certificate) -> int | None:
    constraints = extension_of(certificate.extensions, x509.BasicConstraints)
    return None if constraints is None else constraints.path_length


_THINGS = (
    _Thing(
        "this type of key or signature",
        ("Forbidden public key algorithm", "Forbidden signature algorithm"),
        _other_keys,
    ),
    _Thing("certificate policies (RFC 5280, 6.1.1)", ("unaccounted-for critical extensions",), _policies),
    _Thing(
        "name constraints of this kind (RFC 5280, 4.2.1.10)",
        ("unsupported name constraint", "unsupported directoryName constraint", "directoryName matching"),
        _constraints,
    ),
    _Thing(
        "names that are alike but not the same byte by byte (RFC 5280, 7.1)",
        ("all candidates exhausted with no interior errors",),
        _names_to_compare,
    ),
    _Thing(
        "that self-issued certificates do not count for a path length (RFC 5280, 4.2.1.9)",
        ("path length", "signature does not match"),
        _long_by_self_issued_ones,
    ),
)
