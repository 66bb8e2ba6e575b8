"""Traffic information over HTTP (reference point RP4): a server for a centre, and a report to one."""

from __future__ import annotations

from labconsole_v2x.pki.http_transport import AuthorityServer, AuthorityUnreachableError, ContentTypes, post
from labconsole_v2x.pki.secured_messages import UnreadableRequestError
from labconsole_v2x.security.structures import Certificate
from labconsole_v2x.security.verification import Verifier
from labconsole_v2x.stations.traffic_centre import (
    BadConfirmationError,
    SentReport,
    TrafficCentre,
    read_confirmation,
)

TRAFFIC_TYPES = ContentTypes("application/octet-stream", "application/octet-stream")
"""Traffic information has no content type of its own; those of TS 102 941 are for requests to authorities."""


def traffic_server(host: str, port: int, centre: TrafficCentre) -> AuthorityServer:
    """A server for a centre, as for an authority: to be entered. A report without a confirmation is a bad request.

    Raises UserError: the port is in use, or the host is not one of this computer.
    """

    def answer(octets: bytes) -> bytes:
        verdict, confirmation = centre.receive(octets)
        if confirmation is None:
            raise UnreadableRequestError(verdict.value)
        return confirmation

    return AuthorityServer(host, port, answer, content_types=TRAFFIC_TYPES)


def post_report(url: str, report: SentReport, centre: Certificate, verifier: Verifier) -> str:
    """The centre's verdict on a report, as text.

    Raises `AuthorityUnreachableError`: no answer, one of another kind, or one that is not the centre's confirmation.
    """
    octets = post(url, report.octets, content_types=TRAFFIC_TYPES)
    try:
        return read_confirmation(octets, report, centre, verifier)
    except BadConfirmationError as error:
        raise AuthorityUnreachableError(
            f"{url} answers no confirmation of the report ({error}): check the URL and the centre's ticket."
        ) from error
