"""The structure of a description, and rows for names, times, numbers and keys; all safe to show as plain text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from labconsole.safe_text import hidden_characters, shown
from labconsole.security.x509.fingerprints import fingerprint, grouped, key_fingerprint
from labconsole.security.x509.key_types import TITLES, problem_of, type_of
from labconsole_certificates.describing.oid_names import ATTRIBUTES, BROKEN_SIGNATURES, SIGNATURES


@dataclass(frozen=True)
class Row:
    """One row; `value` may have several lines. `fixed_width`: hex and the like. `warning`: needs attention."""

    label: str
    value: str
    fixed_width: bool = False
    warning: bool = False


@dataclass(frozen=True)
class Section:
    """A titled group of rows."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Description:
    """A description: a title, and sections of rows."""

    title: str
    sections: tuple[Section, ...]


_BYTES_PER_LINE = 16
_MOST_ROWS = 50
_MOST_LINES = 150
_MOST_CHARACTERS = 1_000


def moment(at: datetime) -> str:
    """A time (aware) as text, UTC, to the second."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def first_rows(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The first 50 rows, and the number left out: thousands would block the window."""
    taken = iter(rows)
    shown_ones = tuple(islice(taken, _MOST_ROWS))
    further = sum(1 for _ in taken)
    return (*shown_ones, Row("Further ones", f"{further:,} (not shown)")) if further else shown_ones


def first_lines(lines: Iterable[str]) -> str:
    """The first 150 lines as one text, and the number left out."""
    taken = iter(lines)
    shown_ones = list(islice(taken, _MOST_LINES))
    further = sum(1 for _ in taken)
    return "\n".join([*shown_ones, f"and {further:,} more (not shown)"] if further else shown_ones)


def hex_lines(data: bytes) -> str:
    """Hex in lines of 16 bytes, in groups of two."""
    starts = range(0, len(data), _BYTES_PER_LINE)
    return "\n".join(grouped(data[start : start + _BYTES_PER_LINE].hex()) for start in starts)


def serial_text(serial: int) -> str:
    """A serial number in hex, as other tools print it: `0A:1B:...`; an invalid one is marked."""
    if serial <= 0:
        return f"-{serial_text(-serial)}: not positive" if serial else "0: not positive"
    return serial.to_bytes(max(1, (serial.bit_length() + 7) // 8), "big").hex(":").upper()


def name_section(title: str, name: x509.Name) -> Section:
    """One row per attribute of a distinguished name, in its order."""
    return Section(title, first_rows(map(_attribute_row, name)) or (Row("Name", "empty"),))


def signature_row(oid: x509.ObjectIdentifier) -> Row:
    """The signature algorithm; SHA-1 and MD5 with a warning."""
    broken = oid in BROKEN_SIGNATURES
    title = SIGNATURES.get(oid, f"OID {oid.dotted_string}")
    return Row(
        "Signature algorithm", f"{title}: its hash is broken, do not rely on it" if broken else title, False, broken
    )


def key_section(public_key: PublicKeyTypes) -> Section:
    """Type, fingerprint and bytes of a public key; a weak one with a warning."""
    problem = problem_of(public_key)
    info = public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    rows = [Row("Type", key_title(public_key))]
    if problem:
        rows.append(Row("Weakness", problem, warning=True))
    rows.append(Row("SHA-256 of the public key", grouped(key_fingerprint(public_key)), fixed_width=True))
    rows.append(Row("SubjectPublicKeyInfo", hex_lines(info), fixed_width=True))
    return Section("Public key", tuple(rows))


def key_title(public_key: PublicKeyTypes) -> str:
    """The usual name of a key's type."""
    known = type_of(public_key)
    if known is not None:
        return TITLES[known]
    match public_key:
        case rsa.RSAPublicKey():
            return f"RSA-{public_key.key_size}"
        case ec.EllipticCurvePublicKey():
            return f"EC on {public_key.curve.name}"
        case _:
            return type(public_key).__name__.removesuffix("PublicKey").lstrip("_")


def fingerprint_row(thing: x509.Certificate | x509.CertificateSigningRequest | x509.CertificateRevocationList) -> Row:
    """SHA-256 of the DER, in groups to be read aloud."""
    return Row("SHA-256", grouped(fingerprint(thing)), fixed_width=True)


def _attribute_row(attribute: x509.NameAttribute[str | bytes]) -> Row:
    label = ATTRIBUTES.get(attribute.oid, f"OID {attribute.oid.dotted_string}")
    if isinstance(attribute.value, bytes):
        return Row(label, hex_lines(attribute.value), fixed_width=True)
    text = shown(attribute.value[:_MOST_CHARACTERS])
    if len(attribute.value) > _MOST_CHARACTERS:
        text += f" ... ({len(attribute.value):,} characters)"
    return Row(label, text, warning=bool(hidden_characters(attribute.value)))
