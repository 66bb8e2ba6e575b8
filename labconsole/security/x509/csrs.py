"""Certificate signing requests (PKCS #10, RFC 2986): created for an own key, and judged before a CA approves one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes

from labconsole.safe_text import hidden_characters
from labconsole.security.x509.certificate_profiles import (
    CertificateProfile,
    naming,
    profile_asked_for,
    profile_extensions,
)
from labconsole.security.x509.extensions import alternative_names, extension_of
from labconsole.security.x509.issuing import MALFORMED
from labconsole.security.x509.key_types import PrivateKey, problem_of, signing_hash
from labconsole.security.x509.names import general_name_as_text, malformed

_BROKEN_HASHES = (hashes.MD5, hashes.SHA1)
_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)
"""Exceptions of the library when it reads a malformed part of a request."""


_MOST_LISTED = 5


@dataclass(frozen=True)
class CsrJudgement:
    """The facts that a CA needs before it approves a request."""

    proof_of_possession: bool
    """Whether it is signed with the private key of the public key in it."""
    asks_for_ca: bool
    """Whether it asks to become a CA itself, by basicConstraints or keyUsage."""
    profile: CertificateProfile | None
    """The profile that it asks for, if recognisable."""
    names: tuple[x509.GeneralName, ...]
    """Its subjectAltName."""
    extensions: tuple[x509.Extension[x509.ExtensionType], ...]
    """All extensions that it asks for; the CA's profile decides, not they."""
    problems: tuple[str, ...]
    """Sentences: reasons against approval. Empty if there are none."""
    warnings: tuple[str, ...] = ()
    """Sentences: what to check before approval, as names that look like others."""


def create_csr(
    key: PrivateKey, subject: x509.Name, names: Sequence[x509.GeneralName], profile: CertificateProfile
) -> x509.CertificateSigningRequest:
    """A request for a certificate for `key`, which signs it as proof that its sender has it.

    Raises:
        BadInput: it has no name, or the type of key does not fit the profile.
        TokenError: the key is in a token that refuses.
    """
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    for extension, critical in (*naming(subject, names), *profile_extensions(profile, key.public_key())):
        builder = builder.add_extension(extension, critical)
    return builder.sign(key, signing_hash(key))


def judge_csr(csr: x509.CertificateSigningRequest) -> CsrJudgement:
    """The judgement of a request: what it asks for, and all reasons against it. Raises nothing."""
    problems = []
    proof = _proof_of_possession(csr)
    if not proof:
        problems.append("Its signature is not by the key in it, so its sender need not have that key: refuse it.")
    problems.append(_problem_of_key(csr))
    problems.append(_problem_of_hash(csr))
    try:
        extensions = csr.extensions
    except _UNREADABLE as error:
        problems.append(f"The extensions that it asks for cannot be read ({str(error).rstrip('.')}): ask for another.")
        extensions = x509.Extensions([])
    names = alternative_names(extensions)
    asks_for_ca = _asks_for_ca(extensions)
    if asks_for_ca:
        problems.append("It asks to become a CA, which no CSR can here: refuse it, and ask for one without CA rights.")
    problems.append(_problem_of_names(csr, names))
    odd = malformed(names)
    if odd is not None:
        problems.append(f"The name that it asks for, {general_name_as_text(odd)}, {MALFORMED}: ask for another.")
    return CsrJudgement(
        proof_of_possession=proof,
        asks_for_ca=asks_for_ca,
        profile=profile_asked_for(extensions),
        names=names,
        extensions=tuple(extensions),
        problems=tuple(filter(None, problems)),
        warnings=tuple(filter(None, (_hidden_in_names(csr, names),))),
    )


def _hidden_in_names(csr: x509.CertificateSigningRequest, names: Sequence[x509.GeneralName]) -> str:
    """A warning of invisible characters in its names, or ones that turn the direction of writing."""
    try:
        subject = [attribute.value for attribute in csr.subject]
    except _UNREADABLE:  # listed among its problems
        subject = []
    texts = [text for text in (*subject, *(getattr(name, "value", "") for name in names)) if isinstance(text, str)]
    found = dict.fromkeys(character for text in texts for character in hidden_characters(text))
    if not found:
        return ""
    listed = ", ".join([*list(found)[:_MOST_LISTED], *(["..."] if len(found) > _MOST_LISTED else [])])
    return (
        f"Its names have control or direction characters ({listed}), by which a name can look like another one: "
        "approve it only if its sender meant them."
    )


def _proof_of_possession(csr: x509.CertificateSigningRequest) -> bool:
    try:
        return csr.is_signature_valid
    except _UNREADABLE:  # an unknown key or algorithm proves nothing
        return False


def _problem_of_key(csr: x509.CertificateSigningRequest) -> str:
    try:
        return problem_of(csr.public_key())
    except _UNREADABLE:
        return "The key in it cannot be read: ask for RSA, ECDSA P-256, Ed25519 or ML-DSA."


def _problem_of_hash(csr: x509.CertificateSigningRequest) -> str:
    try:
        algorithm = csr.signature_hash_algorithm
    except _UNREADABLE:
        return "It is signed by an unknown algorithm: ask for SHA-256 or better."
    if isinstance(algorithm, _BROKEN_HASHES):
        return f"It is signed with {algorithm.name.upper()}: ask for SHA-256 or better."
    return ""


def _problem_of_names(csr: x509.CertificateSigningRequest, names: Sequence[x509.GeneralName]) -> str:
    try:
        named = bool(csr.subject.rdns or names)
    except _UNREADABLE:
        return "Its subject cannot be read: ask for another."
    return "" if named else "It has no name, neither in its subject nor in its alternative names: ask for another."


def _asks_for_ca(extensions: x509.Extensions) -> bool:
    constraints = extension_of(extensions, x509.BasicConstraints)
    usage = extension_of(extensions, x509.KeyUsage)
    return (constraints is not None and constraints.ca) or (
        usage is not None and (usage.key_cert_sign or usage.crl_sign)
    )
