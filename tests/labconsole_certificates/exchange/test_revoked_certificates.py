"""After a revocation the exchange, and the attempt to connect, say that, and when."""

from __future__ import annotations

import pytest
from cryptography import x509

from labconsole.cli.main import main
from labconsole.errors import UserError
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole_certificates.exchange.progress import direction_of
from labconsole_certificates.exchange.remote_tls_proof import own_certificate
from labconsole_certificates.operations.received_csrs import approve
from labconsole_certificates.revocation.crl_operations import revoke
from tests.labconsole_certificates.three_states import ThreeStates


def test_connect_reports_when_the_client_certificate_was_revoked(
    world: ThreeStates, capsys: pytest.CaptureFixture[str]
) -> None:
    record = revoke(world.store, world.certified(world.a, world.b), x509.ReasonFlags.superseded)
    assert record.revoked is not None
    when = f"State A TLS client was revoked on {record.revoked.at:%Y-%m-%d %H:%M} UTC: State A creates a request"
    steps = direction_of(world.store.snapshot(), world.a, world.b).steps
    assert any(step.missing.startswith(when) for step in steps)
    assert main(["pki", "connect", world.a.name, world.b.name, "--host", "127.0.0.1", "--port", "1"]) == 1
    assert "was revoked on" in " ".join(capsys.readouterr().err.split())


def test_listen_reports_when_the_server_certificate_was_revoked(world: ThreeStates) -> None:
    profile = CertificateProfile.TLS_SERVER
    request = world.asks(world.b, world.b, "swim.b.example", profile=profile)
    revoke(world.store, approve(world.store, request))
    with pytest.raises(
        UserError, match=r"State B TLS server was revoked on .*: State B creates a request to its own CA"
    ):
        own_certificate(world.store.snapshot(), world.b.name, world.a.name, connects=False)
