"""Forms of the actions of the CSR method."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from labconsole.security.x509.profiles import CertificateProfile
from labconsole.trial import Parameters
from labconsole_certificates.operations.fields import AuthorityChoice, Days, Names, NewKeyParameters, Profile, Subject
from labconsole_certificates.operations.requests import END_DAYS


class MakeRequestParameters(NewKeyParameters):
    """A key pair and a CSR that are to be made."""

    issuer: Annotated[str, Field(title="For the CA of", description="State that is asked to certify", min_length=1)]
    profile: Profile = CertificateProfile.TLS_CLIENT
    subject: Subject = ""
    names: Names = ()


class ApproveRequestParameters(Parameters):
    """A certificate that is to be issued for a CSR."""

    request: Annotated[int, Field(title="Request", description="Its number in the list of requests", ge=1)]
    authority: AuthorityChoice = ""
    profile: Annotated[
        CertificateProfile | None,
        Field(title="Profile", description="What the certificate is for; none: what is asked for"),
    ] = None
    valid_days: Days = END_DAYS
    subject: Annotated[
        str,
        Field(
            title="Subject",
            description="Another subject than the CSR's (RFC 4514); empty: the CSR's",
            json_schema_extra={"empty": "As in the CSR"},
        ),
    ] = ""
    names: Annotated[
        tuple[str, ...],
        Field(
            title="Names",
            description="Other names than the CSR's; none: the CSR's",
            json_schema_extra={"empty": "As in the CSR"},
        ),
    ] = ()
    crl_url: Annotated[
        str,
        Field(
            title="CRL at",
            description="URL that the certificate names for its CRL; empty: none",
            json_schema_extra={"empty": "No address in the certificate"},
        ),
    ] = ""
    ocsp_url: Annotated[
        str,
        Field(
            title="OCSP at",
            description="URL that the certificate names for OCSP; empty: none",
            json_schema_extra={"empty": "No address in the certificate"},
        ),
    ] = ""
