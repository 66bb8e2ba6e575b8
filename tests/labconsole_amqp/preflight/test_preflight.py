"""The preflight of a run: a check list with the embedded broker and others, and the check that ends a run before T0."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from labconsole.analysis.verdict_lines import preflight_lines
from labconsole.model.metrics import Verdict, VerdictKind
from labconsole.security.identities import load_certificates, load_identity
from labconsole.security.lab_identities import BROKER, lab_identities
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.broker.queue import QueueLimits
from labconsole_amqp.link.connection import connect
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.link.server_handshake import Access
from labconsole_amqp.link.tls import TlsSettings
from labconsole_amqp.preflight.checks import CheckName, CheckResult, certificate_check
from labconsole_amqp.series import PREFLIGHT
from tests.helpers.authorities import new_authority
from tests.helpers.identities import foreign_authority, write_identity
from tests.labconsole_amqp.embedded_broker import RunningBroker, serving
from tests.labconsole_amqp.lab import Lab, Outcome, run
from tests.labconsole_amqp.link_transfer import send_all, template

pytestmark = pytest.mark.usefixtures("lab_home")


def preflight(outcome: Outcome) -> dict[str, Verdict]:
    """The verdicts of the preflight by the name of the check."""
    verdicts = [one for one in outcome.evaluation.verdicts if one.kind is VerdictKind.PREFLIGHT]
    return {one.name.removeprefix("preflight: "): one for one in verdicts}


def results(outcome: Outcome) -> dict[str, str]:
    return {name: verdict.result for name, verdict in preflight(outcome).items()}


def test_a_run_over_tls_has_a_verdict_of_each_check_with_evidence_of_each_end(tmp_path: Path) -> None:
    outcome = Lab(tmp_path / "run").run(test=2, count=20, senders=2, numbered=True)
    assert outcome.failure is None
    checks = preflight(outcome)
    others = {CheckName.TRIAL_ID, CheckName.OTHER_CERTIFICATE}  # of two consoles, and of ends without a broker
    assert list(checks) == [name for name in CheckName if name not in others]
    assert {name for name, verdict in checks.items() if verdict.result != "pass"} == {"revocation"}
    assert checks["revocation"].result == "not applicable"
    assert checks["TLS"].evidence.keys() == {"receiver-0", "sender-0", "sender-1"}
    assert checks["TLS"].evidence["sender-1"]["version"] == "TLSv1.3"
    assert checks["link"].reason.count("Sender: ") == checks["link"].reason.count("Receiver: ") == 1
    chain = checks["broker's certificate"].evidence["sender-0"]["chain"]
    broker = load_certificates(lab_identities().files(BROKER).certificate)[0]
    assert chain[0]["subject"] == broker.subject.rfc4514_string()
    assert chain[0]["not_after"] == broker.not_valid_after_utc.isoformat()
    assert checks["message size"].evidence["sender-0"]["size"] == outcome.figures["sent_size"]
    assert checks["clock offset"].reason == "One clock: sender and receiver are on this computer."
    (event,) = outcome.events_named(PREFLIGHT)
    assert event.source == "worker"
    assert event.message.startswith("Preflight passed: own certificate, TCP, TLS, broker's certificate, SASL, link")


def test_without_tls_its_checks_do_not_apply(tmp_path: Path) -> None:
    found = results(run(tmp_path / "run", test=1, count=5))
    assert {name for name, result in found.items() if result == "not applicable"} == {
        *("TLS", "broker's certificate", "revocation")
    }
    assert "own certificate" not in found


@contextmanager
def external(folder: Path, **more: Any) -> Iterator[tuple[RunningBroker, dict[str, Any]]]:
    """A broker with TLS of another owner, and the parameters of a run through it with the lab's identities."""
    tls = TlsSettings(lab_identities().identity(BROKER))
    with serving(BrokerSettings(queues=("q",), tls_port=0, tls=tls, **more)) as running:
        yield running, {"broker": "external", "port": running.ports.tls, "address": "q", "count": 5, "test": 2}


def test_revocation_that_is_not_known_is_a_warning_at_a_broker_of_another_owner(tmp_path: Path) -> None:
    with external(tmp_path) as (_, settings):
        outcome = run(tmp_path / "run", **settings)
    assert outcome.failure is None
    assert results(outcome)["revocation"] == "warning"
    assert "import a CRL of each of its CAs" in preflight(outcome)["revocation"].reason
    (event,) = outcome.events_named(PREFLIGHT)
    assert event.message.startswith("Preflight passed with warnings: Whether the broker's certificate is revoked")


def test_drained_messages_are_a_warning_with_their_number(tmp_path: Path) -> None:
    with external(tmp_path) as (running, settings):
        with connect(running.plain) as client:
            send_all(Sender(client, "q"), template(), 3)
        outcome = run(tmp_path / "run", **settings, leftover="drain")
    depth = preflight(outcome)["queue depth"]
    assert (depth.result, depth.evidence["receiver-0"]) == ("warning", {"address": "q", "depth": 0, "drained": 3})


FAILING = [
    ({"port": 1}, {"TCP"}, "refused the connection"),
    ({"test": 1}, {"TLS"}, "is a TLS port, and Test 1 has no TLS"),
    ({"server_name": "elsewhere.example"}, {"broker's certificate"}, 'set "Server name" (server_name)'),
    ({"address": "other"}, {"link"}, "has no queue other: create it there"),
    ({"payload": "fpl-fixm"}, {"message size"}, "raise its limit or send a smaller payload"),
]


@pytest.mark.parametrize(("more", "names", "sentence"), FAILING, ids=[str(one[0]) for one in FAILING])
def test_the_check_that_fails_ends_the_run_before_t0_and_is_shown_with_its_remedy(
    more: dict[str, Any], names: set[str], sentence: str, tmp_path: Path
) -> None:
    with external(tmp_path, limits=QueueLimits(max_message_size=1000)) as (_, settings):
        outcome = run(tmp_path / "run", **{**settings, "mode": "sender", **more})
    assert sentence in str(outcome.failure)
    assert not outcome.events_named("T0")
    assert {name for name, result in results(outcome).items() if result == "fail"} == names
    lines = preflight_lines(outcome.evaluation.verdicts)
    assert lines.summary is not None and lines.summary.result == "fail"
    assert any(verdict.reason == outcome.failure for verdict in lines.open)


def test_a_user_who_is_refused_fails_at_sasl(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.touch(0o600)
    password.write_text("wrong")
    with serving(BrokerSettings(queues=("q",), access=Access(users={"lab": "secret"}))) as running:
        settings = {"broker": "external", "port": running.ports.plain, "address": "q", "username": "lab"}
        outcome = run(tmp_path / "run", test=1, count=5, password_file=str(password), **settings)
    assert results(outcome) == {"SASL": "fail"}


def test_a_broker_of_a_foreign_authority_fails_at_its_certificate(tmp_path: Path) -> None:
    files = write_identity(tmp_path, "broker", foreign_authority(), CertificateProfile.TLS_SERVER)
    tls = TlsSettings(load_identity(files, "the broker"))
    with serving(BrokerSettings(queues=("q",), tls_port=0, tls=tls)) as running:
        settings = {"broker": "external", "port": running.ports.tls, "address": "q", "mode": "sender"}
        outcome = run(tmp_path / "run", test=2, count=5, **settings)
    assert results(outcome)["broker's certificate"] == "fail"
    assert results(outcome)["own certificate"] == "pass"


@contextmanager
def old_tls_port(folder: Path) -> Iterator[int]:
    """A port that speaks TLS 1.1 alone, as OpenSSL does with all its security off."""
    files = write_identity(folder, "old", new_authority("Old CA"), CertificateProfile.TLS_SERVER)
    secret = load_identity(files, "the broker").secret
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.load_cert_chain(files.certificate, files.key, secret.reveal if secret is not None else None)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.1)
        enough = threading.Event()

        def serve() -> None:
            while not enough.is_set():
                try:
                    client, _ = listening.accept()
                    with client, context.wrap_socket(client, server_side=True):
                        pass
                except OSError:
                    continue

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            enough.set()
            thread.join()


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_tls_below_1_2_is_refused(tmp_path: Path) -> None:
    with old_tls_port(tmp_path) as port:
        outcome = run(tmp_path / "run", test=2, count=5, broker="external", port=port, address="q", mode="sender")
    tls = preflight(outcome)["TLS"]
    assert (tls.result, tls.reason) == ("fail", outcome.failure)
    assert "speaks neither TLS 1.2 nor 1.3" in tls.reason


@pytest.mark.parametrize(("days", "result"), [(29, CheckResult.WARNING), (31, CheckResult.PASSED)])
def test_a_certificate_that_expires_within_30_days_is_a_warning(days: int, result: CheckResult, tmp_path: Path) -> None:
    chain = load_certificates(write_identity(tmp_path, "soon", new_authority("CA")).certificate)
    at = chain[0].not_valid_after_utc - timedelta(days=days, hours=1)
    check = certificate_check(CheckName.CERTIFICATE, chain, at.astimezone(UTC))
    assert (check.result, check.evidence["days"]) == (result, days)
    assert ("renew it before" in check.sentence) is (result is CheckResult.WARNING)
    assert datetime.fromisoformat(check.evidence["chain"][0]["not_after"]) == chain[0].not_valid_after_utc
