"""Forms of the actions that make end certificates without a CSR, and move keys by PKCS#12."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.profiles import CertificateProfile
from labconsole.trial import Parameters
from labconsole_certificates.operations.fields import (
    AtHome,
    AuthorityChoice,
    CertificateChoice,
    Days,
    EndProfile,
    FileType,
    Kept,
    Names,
    NewKeyParameters,
    Protection,
    SavedTo,
    StateName,
    Subject,
)
from labconsole_certificates.operations.requests import END_DAYS


class MakeSelfSignedParameters(NewKeyParameters):
    """An end certificate that is to sign itself."""

    profile: EndProfile = CertificateProfile.TLS_CLIENT
    subject: Subject = ""
    names: Names = ()
    valid_days: Days = END_DAYS


class MakeForClientParameters(Parameters):
    """Key and certificate that are to be made for another State."""

    issuer: Annotated[str, Field(title="Issuing State", description="A State of this console, with a CA", min_length=1)]
    client: Annotated[str, Field(title="For", description="State that gets key and certificate", min_length=1)]
    key_type: FileType = KeyType.P_256
    profile: EndProfile = CertificateProfile.TLS_CLIENT
    subject: Subject = ""
    names: Names = ()
    valid_days: Days = END_DAYS
    authority: AuthorityChoice = ""
    file: SavedTo


class ImportPkcs12Parameters(Parameters):
    """A PKCS#12 that another State made."""

    state: StateName
    file: Annotated[
        Path, AtHome, Field(title="PKCS#12", description="File with key, certificate and chain (.p12, .pfx)")
    ]
    sender: Annotated[str, Field(title="From", description="State that made it; empty: not noted")] = ""
    protection: Kept = Protection.KEPT


class ExportPkcs12Parameters(Parameters):
    """A certificate that is to leave with its private key."""

    certificate: CertificateChoice
    file: SavedTo
