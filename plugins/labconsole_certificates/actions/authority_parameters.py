"""Forms of the actions on one's own CAs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

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


class CreateRootParameters(NewKeyParameters):
    """A root CA that is to be made."""

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
