"""Fields that the forms of several actions have, and what they say of keys that are to be made."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from labconsole.security.secrets import SecretSource
from labconsole.security.x509.key_types import TITLES, KeyType
from labconsole.security.x509.profiles import TEXTS, CertificateProfile
from labconsole.trial import Parameters
from labconsole_certificates.operations.new_keys import DEFAULT_TYPE, NewKey


class Protection(StrEnum):
    """Who has the passphrase of a key file."""

    KEPT = "kept"
    ASKED = "asked"


_PROTECTIONS = {"kept": "Random, kept by this console", "asked": "Mine: I am asked each time"}

Days = Annotated[
    int,
    Field(
        title="Valid for",
        description="Days from now; it begins an hour ago, since clocks differ",
        ge=1,
        le=36_500,
        json_schema_extra={"unit": "days"},
    ),
]


StateName = Annotated[str, Field(title="State", description="Name of a State of this console", min_length=1)]
Subject = Annotated[
    str,
    Field(
        title="Subject",
        description="Who is certified (RFC 4514), in any script: CN=state-a,O=CAAS,C=SG. Empty: named after the State",
        json_schema_extra={"empty": "Named after the State"},
    ),
]
Names = Annotated[
    tuple[str, ...],
    Field(
        title="Names",
        description="Subject alternative names: DNS names in any script, or IP:192.0.2.1, URI:..., email:...",
        json_schema_extra={"empty": "None; a TLS server needs its host names"},
    ),
]
Limits = Annotated[
    tuple[str, ...],
    Field(
        title="Only for names in",
        description="DNS domains or IP networks beyond which this CA may not issue (name constraints); none: no limit",
        json_schema_extra={"empty": "No limit: any name"},
    ),
]
PathLength = Annotated[
    int | None,
    Field(
        title="CAs below",
        description="How many CAs may follow below this one; none: any number",
        ge=0,
        le=20,
        json_schema_extra={"empty": "Any number"},
    ),
]
Profile = Annotated[
    CertificateProfile,
    Field(
        title="Profile",
        description="What the certificate is for",
        json_schema_extra={"labels": {str(profile): TEXTS[profile].title for profile in CertificateProfile}},
    ),
]
AuthorityChoice = Annotated[
    str,
    Field(title="Issued by", description="Fingerprint of the CA certificate; empty: the State's newest that can issue"),
]
CertificateChoice = Annotated[
    str,
    Field(title="Certificate", description="Its SHA-256 fingerprint, or 8 digits of its beginning", min_length=8),
]
FileType = Annotated[
    KeyType,
    Field(
        title="Kind of key",
        description="What the key pair is; RSA and ECDSA are understood everywhere, ML-DSA by few peers yet",
        json_schema_extra={"labels": {str(type_): TITLES[type_] for type_ in KeyType}},
    ),
]
SuccessorType = Annotated[
    KeyType | None,
    Field(
        title="Kind of key",
        description="What the new key pair is; not given: the same as the old one",
        json_schema_extra={"labels": {str(type_): TITLES[type_] for type_ in KeyType}, "empty": "As the old one"},
    ),
]
Protected = Annotated[
    Protection,
    Field(
        title="Passphrase",
        description="Of the key file: a random one that the console keeps, or one that you choose and type each time",
        json_schema_extra={"labels": _PROTECTIONS, "shown_if": {"token": ""}},
    ),
]
Kept = Annotated[
    Protection,
    Field(
        title="Passphrase",
        description="Of the key file here: a random one that the console keeps, or one that you choose",
        json_schema_extra={"labels": _PROTECTIONS},
    ),
]
AtHome = AfterValidator(Path.expanduser)
"""A path may begin with `~`."""
SavedTo = Annotated[Path, AtHome, Field(title="File", description="Where it is written to; a file that is there stays")]


class SuccessorKeyParameters(Parameters):
    """A key pair that takes the place of another one, and where it is stored."""

    key_type: SuccessorType = None
    token: Annotated[
        str,
        Field(
            title="Token",
            description="Name of a PKCS#11 token (`labconsole hsm tokens`) in which the key is made and stays; RSA and "
            "ECDSA only. Empty: an encrypted file",
        ),
    ] = ""
    protection: Protected = Protection.KEPT

    def new_key(self) -> NewKey:
        """The same for the operations."""
        return NewKey(self.key_type, self.token, passphrase_source(self.protection))


class KeyParameters(SuccessorKeyParameters):
    """A key pair that is to be made, and where it is stored."""

    key_type: FileType = DEFAULT_TYPE


class StateParameters(Parameters):
    """Whose it is."""

    state: StateName


class NewKeyParameters(KeyParameters, StateParameters):
    """Whose key pair is to be made, and where."""


def passphrase_source(protection: Protection) -> SecretSource | None:
    """Where the passphrase lies; None: the console makes one and keeps it."""
    return SecretSource() if protection is Protection.ASKED else None


def kept_as(protection: Protection) -> NewKey:
    """How a key that comes from outside is kept, for the operations; its type does not count."""
    return NewKey(passphrase=passphrase_source(protection))
