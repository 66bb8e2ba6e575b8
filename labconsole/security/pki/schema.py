"""The tables of the certificate database, as a kind of file of its own.

Times are Unix time in µs. Only names of identities are ever deleted: other rows get a time of removal, withdrawal or
revocation. No table holds a private key or passphrase: keys are stored in encrypted files next to the database, or in
PKCS#11 tokens. The records of the tables are in `tables`.
"""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, Integer, LargeBinary, MetaData, Table, Text, text

from labconsole.store.database_file import DatabaseKind
from labconsole.store.rows import Words

FILE_NAME = "pki.db"

metadata = MetaData()


def _id() -> Column[int]:
    return Column("id", Integer, primary_key=True)


def _of(table: str, name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, Integer, ForeignKey(f"{table}.id"), nullable=nullable)


def _time(name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, Integer, nullable=nullable)


def _text(name: str, *, nullable: bool = False, unique: bool = False, comment: str | None = None) -> Column[str]:
    return Column(name, Text, nullable=nullable, unique=unique, comment=comment)


state = Table(
    "state",
    metadata,
    _id(),
    _text("name", unique=True),
    _text("domain"),
    Column("local", Integer, CheckConstraint("local IN (0, 1)"), nullable=False),
    _time("made"),
    sqlite_strict=True,
)

key = Table(
    "key",
    metadata,
    _id(),
    _of("state", "state"),
    _text("label"),
    _text("type", comment="labconsole.security.x509.key_types.KeyType"),
    _text("spki_sha256", unique=True),
    _text("file", nullable=True, unique=True, comment="of an encrypted PKCS#8 file, relative to the keys' directory"),
    _text("source", nullable=True, comment="where its passphrase comes from: SecretSource as JSON"),
    _text("token", nullable=True, comment="name of the PKCS#11 token"),
    _text("token_label", nullable=True, comment="CKA_LABEL"),
    _time("made"),
    CheckConstraint("(file IS NULL) = (source IS NULL) AND (file IS NULL) <> (token IS NULL)"),
    CheckConstraint("(token IS NULL) = (token_label IS NULL)"),
    sqlite_strict=True,
)

certificate = Table(
    "certificate",
    metadata,
    _id(),
    Column("der", LargeBinary, nullable=False),
    _text("sha256", unique=True),
    _text("spki_sha256"),
    _text("issuer", comment="SHA-256 of its issuer's name and key identifier, who gives each serial number once"),
    _text("serial", comment="hex"),
    _of("state", "state", nullable=True),
    _text("profile", nullable=True, comment="labconsole.security.x509.certificate_profiles.CertificateProfile"),
    _text("origin", comment="labconsole.security.pki.records.Origin"),
    _time("revoked", nullable=True),
    _text("reason", nullable=True, comment="x509.ReasonFlags"),
    _of("certificate", "replaces", nullable=True),
    _time("made"),
    _time("removed", nullable=True),
    CheckConstraint("(revoked IS NULL) = (reason IS NULL)"),
    Index("certificate_serial", "issuer", "serial", unique=True),
    Index("certificate_key", "spki_sha256"),
    sqlite_strict=True,
)

request = Table(
    "request",
    metadata,
    _id(),
    Column("der", LargeBinary, nullable=False),
    _text("sha256"),
    _text("spki_sha256"),
    _of("state", "requester"),
    _of("state", "issuer"),
    _text("profile"),
    _text("status", comment="labconsole.security.pki.records.RequestStatus"),
    _text("reason", comment="why it was refused"),
    _of("certificate", "certificate", nullable=True),
    _time("made"),
    _time("decided", nullable=True),
    Index("request_once", "sha256", "issuer", unique=True),
    sqlite_strict=True,
)

crl = Table(
    "crl",
    metadata,
    _id(),
    Column("der", LargeBinary, nullable=False),
    _text("sha256", unique=True),
    _of("certificate", "issuer"),
    _text("number", comment="hex: up to 20 octets (RFC 5280, 5.2.3)"),
    _time("this_update"),
    _time("next_update"),
    sqlite_strict=True,
)

trust = Table(
    "trust",
    metadata,
    _id(),
    _of("state", "state"),
    _of("certificate", "certificate"),
    _text("kind", comment="labconsole.security.pki.records.TrustKind"),
    _time("since"),
    _text("confirmed"),
    _time("withdrawn", nullable=True),
    Index("trust_once", "state", "certificate", "kind", unique=True, sqlite_where=text("withdrawn IS NULL")),
    sqlite_strict=True,
)

bundle = Table(
    "bundle",
    metadata,
    _id(),
    _of("state", "importer"),
    _of("state", "subject"),
    Column("sequence", Integer, nullable=False),
    _time("made"),
    _time("next_update"),
    _text("sha256"),
    _text("signer", comment="SHA-256 of its certificate"),
    Column("trusted", Words, nullable=False, comment="SHA-256 of roots"),
    Index("bundle_once", "importer", "subject", "sequence", unique=True),
    sqlite_strict=True,
)

handover = Table(
    "handover",
    metadata,
    _id(),
    _time("at"),
    _of("state", "sender"),
    _of("state", "receiver"),
    _text("item", comment="labconsole.security.pki.records.Item"),
    _text("sha256"),
    sqlite_strict=True,
)

proof = Table(
    "proof",
    metadata,
    _id(),
    _time("at"),
    _of("state", "client"),
    _of("state", "server"),
    _of("certificate", "client_certificate"),
    _of("certificate", "server_certificate"),
    _text("detail"),
    sqlite_strict=True,
)

rotation = Table(
    "rotation",
    metadata,
    _id(),
    _of("certificate", "certificate"),
    _of("certificate", "successor", nullable=True),
    _text("status", comment="labconsole.security.pki.records.RotationStatus"),
    Column("overlap_days", Integer, nullable=False),
    _time("begun"),
    _time("switched", nullable=True),
    _time("ended", nullable=True),
    Index("rotation_once", "certificate", unique=True, sqlite_where=text("ended IS NULL")),
    sqlite_strict=True,
)

rotation_peer = Table(
    "rotation_peer",
    metadata,
    Column("rotation", Integer, ForeignKey("rotation.id"), primary_key=True),
    Column("peer", Integer, ForeignKey("state.id"), primary_key=True),
    _time("confirmed", nullable=True),
    sqlite_strict=True,
)

identity = Table(
    "identity",
    metadata,
    Column("name", Text, primary_key=True),
    _of("state", "state"),
    _of("certificate", "certificate"),
    sqlite_strict=True,
)

audit = Table(
    "audit",
    metadata,
    _id(),
    _time("at"),
    _text("who"),
    _text("what"),
    _text("subject"),
    _text("fingerprint"),
    _text("detail"),
    sqlite_strict=True,
)

PKI = DatabaseKind(
    noun="certificate database",
    first="create a State and its CA first",
    application_id=0x4C435049,  # "LCPI"
    version=1,
    metadata=metadata,
)
