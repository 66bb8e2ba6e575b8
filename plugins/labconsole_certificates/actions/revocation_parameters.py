"""Forms of the actions on CRLs and OCSP."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from labconsole.trial import Parameters
from labconsole_certificates.operations.fields import CertificateChoice, Days
from labconsole_certificates.operations.revocation import CRL_DAYS


class PublishCrlParameters(Parameters):
    """A CRL that is to be signed."""

    authority: CertificateChoice
    valid_days: Days = CRL_DAYS


class ServeOcspParameters(Parameters):
    """An OCSP responder that is to answer for a CA until it is cancelled."""

    authority: CertificateChoice
    port: Annotated[
        int,
        Field(
            title="Port",
            description="On loopback (127.0.0.1); 0: any free one",
            ge=0,
            le=65_535,
            json_schema_extra={"kind": "port"},
        ),
    ] = 0
