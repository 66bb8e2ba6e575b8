"""Signs reports of the window: which files are named, whether a passphrase is needed, and the signature itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from labconsole.output.report.pdf import Sign
from labconsole.security.key_files import is_encrypted
from labconsole.security.secrets import Secret, SecretRequest, SecretSource


@dataclass(frozen=True)
class SigningFiles:
    """The key and the certificates, in PEM; a PKCS#12 file holds both, and `certificates` is None."""

    key: Path
    certificates: Path | None

    def secret_request(self) -> SecretRequest | None:
        """What must be asked for before the key opens. Raises UserError: the file is missing, or open to others."""
        if self.certificates is not None and not is_encrypted(self.key):
            return None
        return SecretRequest("signing", f"the signing key {self.key.name}", SecretSource())

    def sign(self, secret: Secret | None, place: str) -> Sign:
        """What signs a PDF with them. Raises UserError for files that do not fit, or a wrong passphrase."""
        # pyHanko takes a second to import.
        from labconsole.output.report.signing import SignatureDetails, sign_pdf, signer_from_pem, signer_from_pkcs12

        signer = (
            signer_from_pem(self.key, self.certificates, secret)
            if self.certificates is not None
            else signer_from_pkcs12(self.key, secret)
        )
        return lambda data: sign_pdf(data, signer, SignatureDetails(place=place))
