"""Traffic information over HTTP on loopback (F-ENC-02): the centre's verdict, or one sentence why there is none."""

from __future__ import annotations

import pytest

from labconsole_v2x.pki.http_transport import AuthorityServer, AuthorityUnreachableError, post
from labconsole_v2x.pki.traffic_service import TRAFFIC_TYPES, post_report, traffic_server
from tests.labconsole_v2x.stations.traffic_lab import MOVEMENT, TrafficLab


@pytest.fixture
def lab() -> TrafficLab:
    return TrafficLab()


def test_report_over_http_is_confirmed_and_kept(lab: TrafficLab) -> None:
    with traffic_server("127.0.0.1", 0, lab.centre) as server:
        report = lab.report()
        for verdict in ("accepted", "duplicate"):
            assert post_report(server.url, report, lab.identity.ticket, lab.receiver) == verdict
    assert len(lab.centre.reports) == 1


def test_what_the_centre_cannot_decrypt_is_a_bad_request_with_the_reason(lab: TrafficLab) -> None:
    other = lab.sender(lab.centre_identity().ticket).report(MOVEMENT)
    with traffic_server("127.0.0.1", 0, lab.centre) as server:
        with pytest.raises(AuthorityUnreachableError, match=r"HTTP 400, encrypted to another recipient"):
            post_report(server.url, other, lab.identity.ticket, lab.receiver)
        with pytest.raises(AuthorityUnreachableError, match=r"HTTP 400, not encrypted data"):
            post(server.url, b"clear text", content_types=TRAFFIC_TYPES)
        with pytest.raises(AuthorityUnreachableError, match=r"HTTP 415, send application/octet-stream"):
            post(server.url, lab.report().octets)
    assert not lab.centre.reports


def test_server_that_is_not_the_centre_is_named(lab: TrafficLab) -> None:
    with (
        AuthorityServer("127.0.0.1", 0, bytes, content_types=TRAFFIC_TYPES) as echo,
        pytest.raises(AuthorityUnreachableError, match=r"answers no confirmation of the report \(it is not encrypted"),
    ):
        post_report(echo.url, lab.report(), lab.identity.ticket, lab.receiver)
