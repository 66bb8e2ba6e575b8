"""Distinguished names in any script, as text (RFC 4514) and back."""

from __future__ import annotations

import re
import unicodedata

from cryptography import x509
from cryptography.x509.oid import NameOID

from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.shown_text import hidden_characters, with_hex_pairs

_KEYWORDS = {
    "E": NameOID.EMAIL_ADDRESS,
    "SERIALNUMBER": NameOID.SERIAL_NUMBER,
    "T": NameOID.TITLE,
    "SN": NameOID.SURNAME,
    "GN": NameOID.GIVEN_NAME,
    "ORGID": NameOID.ORGANIZATION_IDENTIFIER,
}
"""Besides those of RFC 4514, which every reader knows."""
_OIDS = {oid: keyword for keyword, oid in _KEYWORDS.items()}

_BLANKS_BEFORE_NEXT = re.compile(r"(?<!\\)((?:\\\\)*[,+])\s+")


def name_from_text(text: str) -> x509.Name:
    """A distinguished name from `CN=...,O=...,C=SG` (RFC 4514), values in any script; kept in Unicode's form NFC.

    Raises:
        BadInput: empty, not of this form, an unknown keyword, a value too long or with hidden characters.
    """
    stripped = _BLANKS_BEFORE_NEXT.sub(r"\1", unicodedata.normalize("NFC", text.strip()))
    try:
        name = x509.Name.from_rfc4514_string(stripped, _KEYWORDS)
    except ValueError as error:
        reason = f" ({str(error).rstrip('.')})" if str(error) else ""
        raise BadInput(
            f"{text!r} is no distinguished name{reason}: write it as CN=Name,O=Organisation,C=SG."
        ) from error
    if not list(name):
        raise BadInput("The distinguished name is empty: write it as CN=Name,O=Organisation,C=SG.")
    hidden = sorted({each for part in name if isinstance(part.value, str) for each in hidden_characters(part.value)})
    if hidden:
        raise BadInput(f"The distinguished name has characters that do not show ({', '.join(hidden)}): remove them.")
    return name


def name_as_text(name: x509.Name) -> str:
    """RFC 4514; characters that do not show or turn the direction of writing are hex pairs: safe to show."""
    return with_hex_pairs(name.rfc4514_string(_OIDS))
