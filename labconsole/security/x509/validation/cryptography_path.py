"""What the verifier of `cryptography` says of a path: names, constraints, key usage and signatures, but no CRLs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from cryptography import x509
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    Policy,
    PolicyBuilder,
    Store,
    VerificationError,
)

from labconsole.security.x509.extensions import is_ca
from labconsole.security.x509.validation.judgement import Answer, Opinion
from labconsole.security.x509.validation.strength import weak_key, weakness
from labconsole.security.x509.validation.unknown_things import what_it_does_not_know

_LONGEST_PATH = 16
"""CAs between end certificate and root."""

_CLEARER = {"all candidates exhausted with no interior errors": "an issuer on the way to a trusted CA is missing"}
"""Where its own words would tell nobody anything."""

_PREFIXES = (
    "validation failed: ",
    "candidates exhausted: ",
    "fatal error: ",
    "Python extension validator failed: ValueError: ",
)


class CryptographyVerifier:
    """Trusted certificates, as `cryptography` takes them; `at` is aware."""

    def __init__(self, roots: Iterable[x509.Certificate], *, at: datetime) -> None:
        trusted = list(roots)
        builder = PolicyBuilder().time(at).max_chain_depth(_LONGEST_PATH)
        builder = builder.extension_policies(ca_policy=_authorities(), ee_policy=_end_certificates())
        self._verifier = builder.store(Store(trusted)).build_client_verifier() if trusted else None

    def judge(
        self, leaf: x509.Certificate, others: Iterable[x509.Certificate], path: Sequence[x509.Certificate]
    ) -> Opinion:
        """Judge `leaf` with `others` as its possible intermediates; `path` is one that is known to lead to a root."""
        if self._verifier is None:
            return Opinion(Answer.REFUSED, "nothing is trusted")
        try:
            self._verifier.verify(leaf, list(others))
        except VerificationError as refusal:
            said = _in_short(str(refusal))
            beyond = what_it_does_not_know(said, path or (leaf,))
            weak = weakness(path) if beyond else ""
            if weak:  # where it gives up it has not looked at all keys and signatures, and OpenSSL takes any
                return Opinion(Answer.REFUSED, weak)
            if beyond:
                return Opinion(Answer.UNKNOWN, f"it does not know {beyond} ({said})")
            return Opinion(Answer.REFUSED, _CLEARER.get(said, said))
        return Opinion(Answer.ACCEPTED)


def _authorities() -> ExtensionPolicy:
    """RFC 5280 asks of a CA basicConstraints and, if key usage is limited, keyCertSign; nothing that WebPKI adds."""
    policy = ExtensionPolicy.permit_all()
    policy = policy.require_present(x509.BasicConstraints, Criticality.AGNOSTIC, None)
    policy = policy.may_be_present(x509.NameConstraints, Criticality.CRITICAL, None)
    return policy.may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, _may_sign_certificates)


def _end_certificates() -> ExtensionPolicy:
    """What the verifier does not look at in the end of a path, which may be a CA too: its key, and its constraints."""
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
    """Without the prefixes that all refusals have, and without the dumps of structures at the end."""
    for prefix in _PREFIXES:
        said = said.removeprefix(prefix)
    for dump in (": AlgorithmIdentifier {", " (encountered processing"):
        said = said.partition(dump)[0]
    return said
