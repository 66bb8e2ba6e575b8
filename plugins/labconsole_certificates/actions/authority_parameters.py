"""Forms of the actions on one's own CAs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from labconsole.security.x509.key_types import TITLES, KeyType
from labconsole.trial import Parameters
from labconsole_certificates.actions.fields import (
    AtHome,
    AuthorityChoice,
    Days,
    Kept,
    Limits,
    NewKeyParameters,
    PathLength,
    Protection,
    StateName,
    Subject,
)
from labconsole_certificates.operations.authorities import INTERMEDIATE_DAYS, ROOT_DAYS
from labconsole_certificates.operations.new_keys import DEFAULT_TYPE


def _good_for(kind: KeyType) -> str:
    if kind.value.startswith("rsa"):
        return "Tests 1 to 4"
    return "Tests 1 and 2, with OpenSSL 3.5" if kind.value.startswith("ml-dsa") else "Tests 1 and 2"


CaKeyType = Annotated[
    KeyType,
    Field(
        title="Kind of key",
        description="The exchange makes the keys of servers and clients of the same kind. Tests 3 and 4 sign and "
        "encrypt by RSA, as the source does",
        json_schema_extra={"labels": {str(kind): f"{TITLES[kind]}: {_good_for(kind)}" for kind in KeyType}},
    ),
]


class CreateRootParameters(NewKeyParameters):
    """A root CA that is to be made."""

    key_type: CaKeyType = DEFAULT_TYPE
    subject: Subject = ""
    valid_days: Days = ROOT_DAYS
    path_length: PathLength = None
    limits: Limits = ()


class CreateIntermediateParameters(NewKeyParameters):
    """A CA below another one that is to be made."""

    issuer: AuthorityChoice = ""
    issuing_state: Annotated[
        str, Field(title="Issuing State", description="Whose CA issues it; empty: the State's own")
    ] = ""
    subject: Subject = ""
    valid_days: Days = INTERMEDIATE_DAYS
    path_length: PathLength = 0
    limits: Limits = ()


class ImportAuthorityParameters(Parameters):
    """A CA that was made elsewhere."""

    state: StateName
    file: Annotated[
        Path,
        AtHome,
        Field(title="Certificate", description="PEM or DER, a chain after it; or a PKCS#12 with the key in it"),
    ]
    key_file: Annotated[
        Annotated[Path, AtHome] | None,
        Field(title="Private key", description="PEM or DER, PKCS#8; none: it is in the PKCS#12"),
    ] = None
    protection: Kept = Protection.KEPT
