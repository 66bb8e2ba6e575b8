"""Certificate profiles: the purpose of a certificate decides its extensions (RFC 5280, 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from labconsole.errors import BadInput
from labconsole.security.x509.extensions import extension_of
from labconsole.security.x509.key_types import PublicKey


class CertificateProfile(StrEnum):
    """The purpose of a certificate."""

    ROOT = "root"
    INTERMEDIATE = "intermediate"
    TLS_SERVER = "tls-server"
    TLS_CLIENT = "tls-client"
    MESSAGE_SIGNING = "message-signing"
    MESSAGE_ENCRYPTION = "message-encryption"
    STATE = "state"
    """TLS client that also signs and decrypts messages with one key: the lab's States in AMQP trials."""
    OCSP_RESPONDER = "ocsp-responder"


@dataclass(frozen=True)
class ProfileText:
    """Title and description of a profile."""

    title: str
    description: str


TEXTS = MappingProxyType(
    {
        CertificateProfile.ROOT: ProfileText("Root CA", "Signs certificates and CRLs; signed by itself."),
        CertificateProfile.INTERMEDIATE: ProfileText("Intermediate CA", "Signs certificates and CRLs; signed by a CA."),
        CertificateProfile.TLS_SERVER: ProfileText("TLS server", "A broker or service that clients connect to."),
        CertificateProfile.TLS_CLIENT: ProfileText(
            "TLS client", "A client that connects to a State's broker or service."
        ),
        CertificateProfile.MESSAGE_SIGNING: ProfileText(
            "Message signing", "Signs messages, whose origin is so proven."
        ),
        CertificateProfile.MESSAGE_ENCRYPTION: ProfileText(
            "Message encryption", "Others encrypt messages to it: its key is RSA or ECDSA."
        ),
        CertificateProfile.STATE: ProfileText(
            "State in AMQP trials", "TLS client, signs messages and is encrypted to, all with one RSA or ECDSA key."
        ),
        CertificateProfile.OCSP_RESPONDER: ProfileText(
            "OCSP responder", "Signs answers on which certificates are valid."
        ),
    }
)

AUTHORITIES = frozenset({CertificateProfile.ROOT, CertificateProfile.INTERMEDIATE})
"""Profiles of a CA."""

_ENCRYPTED_TO = frozenset({CertificateProfile.MESSAGE_ENCRYPTION, CertificateProfile.STATE})
_PURPOSES = MappingProxyType(
    {
        CertificateProfile.TLS_SERVER: (ExtendedKeyUsageOID.SERVER_AUTH,),
        CertificateProfile.TLS_CLIENT: (ExtendedKeyUsageOID.CLIENT_AUTH,),
        CertificateProfile.MESSAGE_SIGNING: (ExtendedKeyUsageOID.EMAIL_PROTECTION,),
        CertificateProfile.MESSAGE_ENCRYPTION: (ExtendedKeyUsageOID.EMAIL_PROTECTION,),
        CertificateProfile.STATE: (ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.EMAIL_PROTECTION),
        CertificateProfile.OCSP_RESPONDER: (ExtendedKeyUsageOID.OCSP_SIGNING,),
    }
)
"""Extended key usages. CMS tools require S/MIME's emailProtection of signers and recipients."""

Extensions = tuple[tuple[x509.ExtensionType, bool], ...]
"""Extensions of a certificate, each with whether it is critical."""


def profile_extensions(
    profile: CertificateProfile, public_key: PublicKey, *, path_length: int | None = None
) -> Extensions:
    """basicConstraints, keyUsage and extended key usage for `public_key`, for certificates and CSRs.

    `path_length`: how many CAs may follow below a CA; None for any number.

    Raises:
        BadInput: a key of this type cannot be used so.
    """
    authority = profile in AUTHORITIES
    found: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=authority, path_length=path_length if authority else None), True),
        (_key_usage(profile, public_key), True),
    ]
    if profile in _PURPOSES:
        found.append((x509.ExtendedKeyUsage(_PURPOSES[profile]), False))
    if profile is CertificateProfile.OCSP_RESPONDER:
        found.append((x509.OCSPNoCheck(), False))
    return tuple(found)


def signature_problem(certificate: x509.Certificate) -> str:
    """Why `certificate` signs no files ("is not for signatures ..."), as CMS tools have it; empty: it does.

    Its keyUsage has digitalSignature or nonRepudiation, its extended key usage emailProtection, where it has them.
    """
    usage = extension_of(certificate.extensions, x509.KeyUsage)
    if usage is not None and not (usage.digital_signature or usage.content_commitment):
        return "is not for signatures (its key usage has neither digitalSignature nor nonRepudiation)"
    purposes = extension_of(certificate.extensions, x509.ExtendedKeyUsage)
    signing = {ExtendedKeyUsageOID.EMAIL_PROTECTION, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
    if purposes is not None and not signing & set(purposes):
        return "is not for signed files (its extended key usage lacks emailProtection)"
    return ""


def naming(subject: x509.Name, names: Sequence[x509.GeneralName]) -> Extensions:
    """subjectAltName with `names`, if there are any: critical where the subject is empty (RFC 5280, 4.2.1.6).

    Raises:
        BadInput: neither subject nor names.
    """
    if names:
        return ((x509.SubjectAlternativeName(dict.fromkeys(names)), not subject.rdns),)
    if not subject.rdns:
        raise BadInput("Neither a subject nor an alternative name is given: say whom it is for, as in CN=Broker,C=SG.")
    return ()


def profile_asked_for(extensions: x509.Extensions) -> CertificateProfile | None:
    """The profile that the extensions of a CSR request by basicConstraints, else by extended key usage, if any."""
    constraints = extension_of(extensions, x509.BasicConstraints)
    if constraints is not None and constraints.ca:
        return CertificateProfile.INTERMEDIATE
    purposes = extension_of(extensions, x509.ExtendedKeyUsage)
    if purposes is None:
        return None
    usage = extension_of(extensions, x509.KeyUsage)
    only_encryption = usage is not None and not usage.digital_signature
    for profile, oids in _PURPOSES.items():
        if set(purposes) == set(oids) and (profile is CertificateProfile.MESSAGE_ENCRYPTION) == only_encryption:
            return profile
    return None


def _key_usage(profile: CertificateProfile, public_key: PublicKey) -> x509.KeyUsage:
    """keyUsage, 4.2.1.3; what the type of key allows: RFC 3279 and 4055 RSA, 8813 EC, 8410 Ed25519, 9881 ML-DSA."""
    is_rsa = isinstance(public_key, rsa.RSAPublicKey)
    is_ec = isinstance(public_key, ec.EllipticCurvePublicKey)
    if profile in _ENCRYPTED_TO and not (is_rsa or is_ec):
        raise BadInput(
            f"The profile {TEXTS[profile].title} needs a key that messages are encrypted to: take RSA or ECDSA, "
            "for this type only signs."
        )
    return x509.KeyUsage(
        digital_signature=profile is not CertificateProfile.MESSAGE_ENCRYPTION,
        content_commitment=profile in {CertificateProfile.MESSAGE_SIGNING, CertificateProfile.STATE},
        key_encipherment=is_rsa and profile in {*_ENCRYPTED_TO, CertificateProfile.TLS_SERVER},
        data_encipherment=False,
        key_agreement=is_ec and profile in _ENCRYPTED_TO,
        key_cert_sign=profile in AUTHORITIES,
        crl_sign=profile in AUTHORITIES,
        encipher_only=False,
        decipher_only=False,
    )
