"""The OCSP responder over real HTTP, asked by the console's own check and by the openssl program."""

from __future__ import annotations

import base64
import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp

from labconsole.clock import now_ns
from labconsole.errors import BadInput, UserError
from labconsole.security.pki.records import CertificateRecord
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.issuing import issue
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.authorities import create_root
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.own_csrs import make_request
from labconsole_certificates.operations.received_csrs import approve
from labconsole_certificates.operations.states import add_state
from labconsole_certificates.revocation import ocsp_responder
from labconsole_certificates.revocation.crl_operations import revoke
from labconsole_certificates.revocation.ocsp_answers import NotRevoked, answer
from labconsole_certificates.revocation.ocsp_check import ask
from labconsole_certificates.revocation.ocsp_responder import RunningResponder, serving
from tests.helpers.authorities import named, new_authority
from tests.helpers.openssl_command import run_openssl
from tests.helpers.practice import wait_until
from tests.helpers.x509_keys import key_of

_PATIENCE_S = 60


class Lab:
    """A CA that has issued two certificates, and its responder."""

    def __init__(self, store: PkiStore) -> None:
        self.store = store
        self.state = add_state(store, "State B", "b.example")
        self.root = create_root(store, self.state, NewKey())
        self.good, self.bad = self._issued("good.b.example"), self._issued("bad.b.example")

    def _issued(self, name: str) -> CertificateRecord:
        request = make_request(
            self.store, self.state, self.state, NewKey(), CertificateProfile.TLS_SERVER, names=(name,)
        )
        return approve(self.store, request)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One database for all tests, with one certificate revoked while the responder runs."""
    with PkiStore.open(tmp_path_factory.mktemp("pki")) as store:
        yield Lab(store)


@pytest.fixture(scope="module")
def running(lab: Lab) -> Iterator[RunningResponder]:
    """Its responder, on a free port."""
    with serving(lab.store, lab.root) as responder:
        assert ask(responder.url, lab.bad.certificate, lab.root.certificate).status is ocsp.OCSPCertStatus.GOOD
        revoke(lab.store, lab.bad, x509.ReasonFlags.key_compromise)
        yield responder


@contextmanager
def answering(answered: Callable[[bytes], bytes]) -> Iterator[str]:
    """The address of a server that answers one request as it likes."""

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = answered(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        thread.join()


def test_a_new_revocation_is_answered_at_once(lab: Lab, running: RunningResponder) -> None:
    good = ask(running.url, lab.good.certificate, lab.root.certificate)
    bad = ask(running.url, lab.bad.certificate, lab.root.certificate)

    assert good.status is ocsp.OCSPCertStatus.GOOD
    assert good.sentence == "State B TLS server is not revoked, says State B Root CA."
    assert bad.status is ocsp.OCSPCertStatus.REVOKED
    assert bad.reason is x509.ReasonFlags.key_compromise
    revocation = lab.store.certificate(lab.bad.id).revoked
    assert revocation is not None
    assert bad.revoked_at == revocation.at.replace(microsecond=0)
    assert "(keyCompromise), says State B Root CA." in bad.sentence


def test_openssl_verifies_its_answers(lab: Lab, running: RunningResponder, tmp_path: Path) -> None:
    files = {"root": lab.root, "good": lab.good, "bad": lab.bad}
    for name, record in files.items():
        (tmp_path / name).write_bytes(record.certificate.public_bytes(Encoding.PEM))
    chain = ("-issuer", tmp_path / "root", "-CAfile", tmp_path / "root")

    said = "".join(
        run_openssl("ocsp", *chain, "-cert", tmp_path / name, "-url", running.url) for name in ("good", "bad")
    )

    assert said.count("Response verify OK") == 2
    assert f"{tmp_path / 'good'}: good" in said
    assert f"{tmp_path / 'bad'}: revoked" in said


def test_a_certificate_of_another_ca_is_unknown(lab: Lab, running: RunningResponder) -> None:
    other = new_authority("State C Root")

    with pytest.raises(BadInput, match="not signed by State C Root, nor by a responder of it"):
        ask(running.url, lab.good.certificate, other.certificate)


def _request(lab: Lab) -> bytes:
    builder = ocsp.OCSPRequestBuilder().add_certificate(lab.good.certificate, lab.root.certificate, hashes.SHA256())
    return (
        builder.add_extension(x509.OCSPNonce(b"of an earlier one"), critical=False).build().public_bytes(Encoding.DER)
    )


def _talk(url: str, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    try:
        connection.request(method, path, body or None, {name.replace("_", "-"): text for name, text in headers.items()})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_it_answers_get_too(lab: Lab, running: RunningResponder) -> None:
    path = "/" + quote(base64.b64encode(_request(lab)).decode(), safe="")

    status, data = _talk(running.url, "GET", path)

    assert status == 200
    assert ocsp.load_der_ocsp_response(data).certificate_status is ocsp.OCSPCertStatus.GOOD


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("POST", "/", b"x", {"Content_Type": "text/plain"}, 415),
        ("POST", "/", b"x" * 20_000, {"Content_Type": "application/ocsp-request"}, 413),
        ("POST", "/", b"", {"Content_Type": "application/ocsp-request", "Content_Length": "9" * 5000}, 413),
        ("GET", "/%ff%00", b"", {}, 400),
        ("PUT", "/", b"x", {}, 501),
    ],
)
def test_a_request_that_is_not_ocsp_gets_an_http_error(
    running: RunningResponder, method: str, path: str, body: bytes, headers: dict[str, str], status: int
) -> None:
    assert _talk(running.url, method, path, body, **headers)[0] == status


def test_random_bytes_are_a_malformed_request(running: RunningResponder) -> None:
    status, data = _talk(running.url, "POST", "/", b"rubbish", Content_Type="application/ocsp-request")

    assert status == 200
    assert ocsp.load_der_ocsp_response(data).response_status is ocsp.OCSPResponseStatus.MALFORMED_REQUEST


def test_a_closed_or_silent_connection_does_not_block_others(
    lab: Lab, running: RunningResponder, capfd: pytest.CaptureFixture[str]
) -> None:
    parts = urlsplit(running.url)
    with (
        socket.create_connection((parts.hostname, parts.port)) as silent,
        socket.create_connection((parts.hostname, parts.port)) as gone,
    ):
        gone.sendall(b"POST / HTTP/1.1\r\nContent-Type: application/ocsp-request\r\nContent-Length: 100\r\n\r\nx")
        gone.close()
        assert ask(running.url, lab.good.certificate, lab.root.certificate).status is ocsp.OCSPCertStatus.GOOD
        silent.close()
    assert capfd.readouterr() == ("", "")


def test_an_endless_request_does_not_block_others(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It sends a byte now and then, so that it is never silent."""
    monkeypatch.setattr(ocsp_responder._Handler, "timeout", 600)
    monkeypatch.setattr(ocsp_responder, "_LONGEST_NS", 600_000_000_000)
    slow: list[socket.socket] = []
    with serving(lab.store, lab.root) as responder:
        parts = urlsplit(responder.url)
        for _ in range(33):  # one more than it serves at once
            slow.append(socket.create_connection((parts.hostname, parts.port)))
            slow[-1].sendall(b"POST / HTTP/1.1\r\nX: ")
        assert _left(slow[-1]), "there were too many, so it was turned away"
        with monkeypatch.context() as patch:
            patch.setattr(ocsp_responder, "_LONGEST_NS", 100_000_000)
            assert all(_left(client) for client in slow), "they have taken too long"
        assert wait_until(partial(_is_good, lab, responder.url), patience_s=60), "no place became free"
        slow.append(socket.create_connection((parts.hostname, parts.port)))
        slow[-1].sendall(b"POST / HTTP/1.1\r\nX: ")
        assert _is_good(lab, responder.url), "accepted after the slow one"
        begun = now_ns()
    assert now_ns() - begun < _PATIENCE_S * 1e9, "the end of the responder waited for a client"
    for client in slow:
        client.close()
    assert capfd.readouterr() == ("", "")


def _is_good(lab: Lab, url: str) -> bool:
    """Whether the responder answers; it turns clients away for a moment yet after the slow ones have gone."""
    try:
        return ask(url, lab.good.certificate, lab.root.certificate).status is ocsp.OCSPCertStatus.GOOD
    except UserError:
        return False


def _left(client: socket.socket) -> bool:
    """Whether the responder has ended the connection, long before it would for its silence or length."""
    client.settimeout(_PATIENCE_S)
    try:
        while client.recv(4096):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


def test_it_ends_with_its_context_and_leaves_no_thread(lab: Lab) -> None:
    before = threading.active_count()
    with serving(lab.store, lab.root) as responder:
        ask(responder.url, lab.good.certificate, lab.root.certificate)
        assert responder.answered == 1
        url, port = responder.url, urlsplit(responder.url).port or 0
        with (
            pytest.raises(UserError, match=f"Port {port} of 127.0.0.1 cannot be had"),
            serving(lab.store, lab.root, port=port),
        ):
            pass

    assert threading.active_count() == before
    with pytest.raises(UserError, match="No OCSP responder answers at"):
        ask(url, lab.good.certificate, lab.root.certificate)


@pytest.mark.parametrize("url", ["ldap://127.0.0.1/", "", "file:///etc/passwd", "http://127.0.0.1:1/"])
def test_an_invalid_address_is_refused(lab: Lab, url: str) -> None:
    with pytest.raises(UserError):
        ask(url, lab.good.certificate, lab.root.certificate)


def test_an_answer_to_an_earlier_question_is_not_believed(lab: Lab, running: RunningResponder) -> None:
    recorded = running.answer(_request(lab))
    with answering(lambda _request: recorded) as url, pytest.raises(BadInput, match="may be an old one"):
        ask(url, lab.good.certificate, lab.root.certificate)


def test_only_a_ca_with_its_key_here_can_be_served(lab: Lab) -> None:
    with pytest.raises(UserError, match="is not a CA"), serving(lab.store, lab.good):
        pass


@pytest.mark.parametrize(("begin", "end"), [(-48, -24), (24, 48)], ids=["out of date", "of tomorrow"])
def test_an_answer_that_is_not_of_now_is_not_believed(begin: int, end: int) -> None:
    authority = new_authority("State A Root")
    key = key_of(KeyType.P_256).public_key()
    certificate = issue(authority, key, named("CN=client"), [], CertificateProfile.TLS_CLIENT, Validity.for_days(1))
    now = datetime.now(UTC).replace(microsecond=0)
    validity = Validity(now + timedelta(hours=begin), now + timedelta(hours=end))

    def answered(request: bytes) -> bytes:
        return answer(request, authority.certificate, authority, lambda _serial: NotRevoked.GOOD, validity)

    with answering(answered) as url, pytest.raises(BadInput, match="The OCSP answer is not of now"):
        ask(url, certificate, authority.certificate)
