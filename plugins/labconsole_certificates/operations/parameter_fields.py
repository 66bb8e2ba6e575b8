"""Parameters that several operations share: State, names, key type and storage, and sources of passphrases."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from labconsole.errors import UserError
from labconsole.model.operation import HomePath
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.security.pki.records import State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.secrets import SecretSource
from labconsole.security.x509.certificate_profiles import AUTHORITIES, TEXTS, CertificateProfile
from labconsole.security.x509.key_types import TITLES, KeyType
from labconsole_certificates.operations.new_keys import DEFAULT_TYPE, NewKey
from labconsole_certificates.operations.record_lookup import state_named


class Protection(StrEnum):
    """Who keeps the passphrase of a key file."""

    KEPT = "kept"
    ASKED = "asked"


_PROTECTIONS = {"kept": "Random, kept by this console", "asked": "Mine: I am asked each time"}

Days = Annotated[
    int,
    parameter(
        "Valid for",
        "Days from now; it begins an hour ago, since clocks differ",
        ge=1,
        le=36_500,
        unit="days",
        option="--days",
        aliases=["--valid-days"],
    ),
]


StateName = Annotated[
    str,
    parameter("State", "Name of a State of this console", min_length=1, positional=True),
]
Subject = Annotated[
    str,
    parameter(
        "Subject",
        "Who is certified (RFC 4514), in any script: CN=state-a,O=CAAS,C=SG. Empty: named after the State",
        empty="Named after the State",
        metavar="DN",
    ),
]
Names = Annotated[
    tuple[str, ...],
    parameter(
        "Names",
        "Subject alternative names: DNS names in any script, or IP:192.0.2.1, URI:..., email:...",
        empty="None; a TLS server needs its host names",
        option="--name",
        metavar="NAME",
    ),
]
Limits = Annotated[
    tuple[str, ...],
    parameter(
        "Only for names in",
        "DNS domains or IP networks beyond which this CA may not issue (name constraints); none: no limit",
        empty="No limit: any name",
        option="--only-for",
        metavar="NAME",
    ),
]
PathLength = Annotated[
    int | None,
    parameter("CAs below", "How many CAs may follow below this one; none: any number", ge=0, le=20, empty="Any number"),
]
_END_PROFILES = {str(profile): TEXTS[profile].title for profile in CertificateProfile if profile not in AUTHORITIES}
_OF_ENDS: dict[str, Any] = {"choices": tuple(_END_PROFILES), "labels": _END_PROFILES}


def _of_no_ca(profile: CertificateProfile) -> CertificateProfile:
    if profile in AUTHORITIES:
        raise ValueError(f"choose one of {', '.join(_END_PROFILES)}; {profile} is for CAs")
    return profile


EndProfile = Annotated[
    CertificateProfile,
    AfterValidator(_of_no_ca),
    parameter("Profile", "What the certificate is for", **_OF_ENDS),
]
RequestedProfile = Annotated[
    Annotated[CertificateProfile, AfterValidator(_of_no_ca)] | None,
    parameter(
        "Profile", "What the certificate is for; not given: what the CSR asks for", **_OF_ENDS, empty="As in the CSR"
    ),
]
AuthorityChoice = Annotated[
    str,
    parameter(
        "Issued by",
        "Fingerprint of the CA certificate; empty: the State's newest that can issue",
        option="--authority",
        metavar="CERTIFICATE",
    ),
]
CertificateChoice = Annotated[
    str,
    parameter(
        "Certificate",
        "Its SHA-256, 8 digits of it, or PROFILE:STATE for the newest of a State, as in root:State B",
        min_length=1,
        positional=True,
    ),
]
_KEY_TYPES = {str(type_): TITLES[type_] for type_ in KeyType}
FileType = Annotated[
    KeyType,
    parameter(
        "Kind of key",
        "What the key pair is; RSA and ECDSA are understood everywhere, ML-DSA by few peers yet",
        labels=_KEY_TYPES,
        option="--type",
        aliases=["--key-type"],
        metavar="TYPE",
    ),
]
SuccessorType = Annotated[
    KeyType | None,
    parameter(
        "Kind of key",
        "What the new key pair is; not given: the same as the old one",
        labels={str(type_): TITLES[type_] for type_ in KeyType},
        empty="As the old one",
        option="--type",
        aliases=["--key-type"],
        metavar="TYPE",
    ),
]
_ASKED = {"given": "asked", "option": "--ask-passphrase"}
Protected = Annotated[
    Protection,
    parameter(
        "Passphrase",
        "Of the key file: a random one that the console keeps, or one that you choose and type each time",
        labels=_PROTECTIONS,
        shown_if={"token": ""},
        **_ASKED,
    ),
]
Kept = Annotated[
    Protection,
    parameter(
        "Passphrase",
        "Of the key file here: a random one that the console keeps, or one that you choose",
        labels=_PROTECTIONS,
        **_ASKED,
    ),
]
_NEW_KEY = "Passphrase of the new key from elsewhere"
_CA_KEY = "Passphrase of the CA's key from elsewhere"
_USED_KEY = "Passphrase of the key from elsewhere"


def _secret_file(group: str, description: str, option: str = "--passphrase-file") -> Any:
    extra: dict[str, Any] = {"kind": "secret-file", "group": group, "option": option, "metavar": "FILE"}
    return parameter("File", f"{description} (0600)", default=None, **extra)


def _keyring_entry(group: str, description: str, option: str = "--keyring-entry") -> Any:
    extra: dict[str, Any] = {"group": group, "option": option, "metavar": "NAME"}
    return parameter("Keyring entry", description, default=None, **extra)


class NoParameters(Parameters):
    """No parameters."""


class KeptKeyParameters(Parameters):
    """The source of the passphrase of a key file that is written here."""

    protection: Kept = Protection.KEPT
    passphrase_file: HomePath | None = _secret_file(_NEW_KEY, "File with the passphrase of the new key file")
    keyring_entry: str | None = _keyring_entry(
        _NEW_KEY, "Entry of the OS keyring with the passphrase of the new key file"
    )

    def kept_as(self) -> NewKey:
        """How an imported key is stored; its type is ignored."""
        return NewKey(passphrase=_source(self.protection, self.passphrase_file, self.keyring_entry))


class UnlockParameters(Parameters):
    """The passphrase or PIN of the key that is used, if the operator would be asked for it."""

    passphrase_file: HomePath | None = _secret_file(
        _USED_KEY, "File with the passphrase or PIN of the key that is used"
    )
    keyring_entry: str | None = _keyring_entry(
        _USED_KEY, "Entry of the OS keyring with the passphrase or PIN of the key that is used"
    )

    def unlock(self) -> SecretSource:
        """Its source; the operator, if neither is given."""
        return SecretSource(passphrase_file=self.passphrase_file, keyring_entry=self.keyring_entry)


class IssuerUnlockParameters(Parameters):
    """As `UnlockParameters`, where another key is created, too."""

    issuer_passphrase_file: HomePath | None = _secret_file(
        _CA_KEY, "File with the passphrase or PIN of the issuing CA's key", "--issuer-passphrase-file"
    )
    issuer_keyring_entry: str | None = _keyring_entry(
        _CA_KEY, "Entry of the OS keyring with the passphrase or PIN of the issuing CA's key", "--issuer-keyring-entry"
    )

    def unlock(self) -> SecretSource:
        """Its source; the operator, if neither is given."""
        return SecretSource(passphrase_file=self.issuer_passphrase_file, keyring_entry=self.issuer_keyring_entry)


class PasswordParameters(Parameters):
    """The password of an exported or imported file."""

    password_file: HomePath | None = parameter(
        "File",
        "File with the password (0600); none: it is asked for",
        default=None,
        kind="secret-file",
        group="Password from a file",
        metavar="FILE",
    )

    def password(self) -> SecretSource:
        """Its source; the operator, if no file is given."""
        return SecretSource(passphrase_file=self.password_file)


def new_file(content: str) -> Any:
    """The field of an optional file to write: `--out`."""
    extra: dict[str, Any] = {**_NEW_FILE, "option": "--out", "empty": "No file is written"}
    return parameter("Save to", f"New file for {content}; none: not written", default=None, **extra)


_NEW_FILE: dict[str, Any] = {"kind": "new-file", "metavar": "FILE"}
SavedTo = Annotated[
    HomePath,
    parameter("File", "Where it is written to; a file that is there stays", **_NEW_FILE),
]
WrittenTo = Annotated[
    HomePath | None,
    parameter("File", "Write it to this new file, too", **_NEW_FILE, empty="Not written"),
]
Encoded = Annotated[
    Literal["pem", "der"],
    parameter("Form", "Of the file", labels={"pem": "PEM: text", "der": "DER: binary"}),
]


class SuccessorKeyParameters(Parameters):
    """A key pair that replaces another one, and where it is stored."""

    key_type: SuccessorType = None
    token: str = parameter(
        "Token",
        (
            "Name of a PKCS#11 token (`labconsole hsm tokens`) in which the key is created and stays; RSA and "
            "ECDSA only. Empty: an encrypted file"
        ),
        default="",
    )
    protection: Protected = Protection.KEPT
    passphrase_file: HomePath | None = _secret_file(
        _NEW_KEY, "File with the passphrase of the new key file, or the PIN"
    )
    keyring_entry: str | None = _keyring_entry(
        _NEW_KEY, "Entry of the OS keyring with the new key file's passphrase, or the PIN"
    )

    def new_key(self) -> NewKey:
        """The key pair to create."""
        source = _source(self.protection, self.passphrase_file, self.keyring_entry)
        return NewKey(self.key_type, self.token, source)


class KeyParameters(SuccessorKeyParameters):
    """A key pair to create, and where it is stored."""

    key_type: FileType = DEFAULT_TYPE


class HandoverParameters(Parameters):
    """Sender and receiver, as the exchange between two States records them."""

    sender: str = parameter(
        "From", "State that sent it; empty: not noted", default="", option="--from", metavar="STATE"
    )
    receiver: str = parameter(
        "To", "State that received it; empty: not noted", default="", option="--to", metavar="STATE"
    )

    def parties(self, snapshot: Snapshot) -> tuple[State, State] | tuple[None, None]:
        """Sender and receiver, if they are named. Raises UserError: only one is, or there is no such State."""
        if bool(self.sender) != bool(self.receiver):
            raise UserError("A handover is noted from one State to another: give --from and --to, or neither.")
        if not self.sender:
            return None, None
        return state_named(snapshot, self.sender), state_named(snapshot, self.receiver)


class StateParameters(Parameters):
    """The State that the operation is for."""

    state: StateName


class NewKeyParameters(KeyParameters, StateParameters):
    """A State and its new key pair."""


def _source(protection: Protection, file: Path | None, entry: str | None) -> SecretSource | None:
    """The source of a passphrase; None: the console creates and keeps one. Raises UserError: two sources."""
    if file is not None and entry is not None:
        raise UserError("The passphrase is in a file or in the keyring, not in both: leave one out.")
    if protection is Protection.KEPT and file is None and entry is None:
        return None
    return SecretSource(keyring_entry=entry, passphrase_file=file and file.absolute())
