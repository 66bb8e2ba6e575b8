"""Signs a report: PAdES (ETSI EN 319 142, baseline B-B) by pyHanko, with a key and certificate from files. No network.

`sign_pdf` takes any signer of pyHanko's: also one whose key is in a token. Import this module only
where something is signed: pyHanko takes a third of a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from pyhanko.keys import load_certs_from_pemder_data, load_private_key_from_pemder_data
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.misc import PdfError
from pyhanko.sign.fields import SigSeedSubFilter
from pyhanko.sign.general import SigningError as PyHankoError
from pyhanko.sign.signers import PdfSignatureMetadata, PdfSigner, Signer, SimpleSigner
from pyhanko_certvalidator import registry

from labconsole.clock import wall_now
from labconsole.errors import UserError
from labconsole.security.identities import load_certificates
from labconsole.security.key_files import load_private_key
from labconsole.security.private_files import read_private
from labconsole.security.secrets import Secret
from labconsole.security.x509.extensions import extension_of
from labconsole.security.x509.parsing import PrivateKey, read_pkcs12

_FIELD = "Signature"
_PKCS12_ENDINGS = (".p12", ".pfx")


class SigningError(UserError):
    """A report cannot be signed; the message is one sentence: cause and remedy."""


class _Writer(IncrementalPdfFileWriter):
    """Appends to a PDF and leaves its metadata alone: pyHanko would rewrite those of PDF/A, and not as PDF/A wants."""

    def _update_meta(self) -> None:
        return


@dataclass(frozen=True)
class SignatureDetails:
    """The details of a signature that a PDF viewer shows; empty texts are left out."""

    reason: str = ""
    place: str = ""


def is_pkcs12(path: Path) -> bool:
    """Whether the file holds key and certificates together (by its name: `.p12`, `.pfx`)."""
    return path.suffix.lower() in _PKCS12_ENDINGS


def signer_from_pem(key_file: Path, certificates: Path, secret: Secret | None) -> SimpleSigner:
    """A signer from a PEM key (as `labconsole.security.key_files` reads it) and a PEM file with its certificate first,
    then those of its issuers. Raises UserError, among it SigningError."""
    key = load_private_key(key_file, secret)
    chain = load_certificates(certificates)
    return _signer(key, chain[0], chain[1:], certificates)


def signer_from_pkcs12(path: Path, secret: Secret | None) -> SimpleSigner:
    """A signer from a PKCS#12 file, which its owner alone may read. Raises UserError, among it SigningError."""
    found = read_pkcs12(read_private(path, "key file"), secret, f"The key file {path}")
    if found.key is None or found.certificate is None:
        raise SigningError(f"The key file {path} has no private key with its certificate: export both into one file.")
    return _signer(found.key, found.certificate, list(found.chain), path)


def sign_pdf(data: bytes, signer: Signer, details: SignatureDetails = SignatureDetails()) -> bytes:
    """The PDF with an invisible signature over all of it appended. Raises SigningError where pyHanko refuses."""
    metadata = PdfSignatureMetadata(
        field_name=_FIELD,
        md_algorithm="sha256",
        subfilter=SigSeedSubFilter.PADES,
        reason=details.reason or None,
        location=details.place or None,
    )
    try:
        signed = PdfSigner(metadata, signer).sign_pdf(_Writer(BytesIO(data)))
    except (PyHankoError, PdfError) as error:
        raise SigningError(f"The report cannot be signed ({error}): choose another key.") from error
    return bytes(signed.getvalue())


def _signer(
    key: PrivateKey, certificate: x509.Certificate, issuers: list[x509.Certificate], source: Path
) -> SimpleSigner:
    if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
        raise SigningError("The signing key is neither RSA nor EC: PDF viewers check only these, use such a key.")
    _refuse_unsuitable(key, certificate, source)
    private = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    chain = b"".join(one.public_bytes(Encoding.PEM) for one in (certificate, *issuers))
    certificates = list(load_certs_from_pemder_data(chain))
    store: Any = registry.SimpleCertificateStore
    return SimpleSigner(
        signing_cert=certificates[0],
        signing_key=load_private_key_from_pemder_data(private, passphrase=None),
        cert_registry=store.from_certs(certificates),
    )


def _refuse_unsuitable(
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, certificate: x509.Certificate, source: Path
) -> None:
    """Raises SigningError for a certificate of another key, out of its validity, or not for signatures."""
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if certificate.public_key().public_bytes(*form) != key.public_key().public_bytes(*form):
        raise SigningError(f"The first certificate in {source} is not that of the signing key: name the matching one.")
    now = wall_now()
    if now > certificate.not_valid_after_utc:
        raise SigningError(
            f"The certificate in {source} expired on {certificate.not_valid_after_utc:%Y-%m-%d}: sign with a valid one."
        )
    if now < certificate.not_valid_before_utc:
        raise SigningError(
            f"The certificate in {source} is valid from {certificate.not_valid_before_utc:%Y-%m-%d} on only: check the "
            "clock of this computer, or sign with another one."
        )
    usage = extension_of(certificate.extensions, x509.KeyUsage)
    if usage is not None and not (usage.digital_signature or usage.content_commitment):
        raise SigningError(
            f"The certificate in {source} is not for signatures (its key usage has neither digitalSignature nor "
            "nonRepudiation): use one that is."
        )
