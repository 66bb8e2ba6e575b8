"""An OCSP responder on loopback (RFC 6960, appendix A: over HTTP), which answers from the certificate database."""

from __future__ import annotations

import base64
import binascii
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote_to_bytes

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.ocsp import OCSPResponseBuilder, OCSPResponseStatus

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.model.operation import OperationContext, Result
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.security.pki.records import CertificateRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.security.x509.issuing import Issuer
from labconsole.security.x509.names import short_name
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.issuing import opened_issuer
from labconsole_certificates.operations.parameter_fields import CertificateChoice, UnlockParameters
from labconsole_certificates.operations.pki_operation import PkiOperation, key_secrets
from labconsole_certificates.operations.record_lookup import certificate_named
from labconsole_certificates.revocation.ocsp_answers import StatusBook, answer

_LOOPBACK = "127.0.0.1"
_LONGEST_REQUEST = 16_384
"""Octets; a request for one certificate has about 100."""
_RECEIVE_TIMEOUT_S = 5.0
_POLL_S = 0.2
_LONGEST_NS = 10_000_000_000
"""Timeout of a connection, in total."""
_MOST_AT_ONCE = 32
_ANSWER_DAYS = 1
_INTERNAL_ERROR = OCSPResponseBuilder.build_unsuccessful(OCSPResponseStatus.INTERNAL_ERROR).public_bytes(Encoding.DER)
_REQUEST_TYPE, _RESPONSE_TYPE = "application/ocsp-request", "application/ocsp-response"


class RunningResponder:
    """A responder that answers for `authority`; shared by threads."""

    def __init__(self, store: PkiStore, authority: CertificateRecord, issuer: Issuer) -> None:
        self.authority = authority
        self.url = ""
        """Its URL, as in http://127.0.0.1:2560/."""
        self._issuer = issuer
        self._statuses = StatusBook(store, authority)
        self._turn = threading.Lock()
        self._answered = 0
        self.problem = ""
        """The last sentence with which database or token refused; empty if they did not."""

    @property
    def answered(self) -> int:
        """Requests that were answered so far."""
        return self._answered

    def answer(self, request: bytes) -> bytes:
        """The response (DER) to a request (DER); "internalError" if database or token refuses.

        One at a time: a token's key does not sign two things at once.
        """
        with self._turn:
            self._answered += 1
            try:
                return answer(
                    request,
                    self.authority.certificate,
                    self._issuer,
                    self._statuses.status_of,
                    Validity.for_days(_ANSWER_DAYS),
                )
            except UserError as refusal:
                self.problem = str(refusal)
                return _INTERNAL_ERROR


@contextmanager
def serving(
    store: PkiStore, authority: CertificateRecord, *, port: int = 0, prompt: Prompt | None = None
) -> Iterator[RunningResponder]:
    """A responder for the certificates of `authority`, signing with its own key while the context is open.

    Changes of the database take effect at once. `port` 0: any free one of loopback. Raises UserError: not a CA, its key
    does not open, or the port is in use.
    """
    with opened_issuer(store.directory, store.snapshot(), authority, prompt) as issuer:
        running = RunningResponder(store, authority, issuer)
        try:
            server = _Server((_LOOPBACK, port), running)
        except OSError as error:
            raise UserError(f"Port {port} of {_LOOPBACK} cannot be had ({error.strerror}): choose another.") from error
        with server:
            running.url = f"http://{_LOOPBACK}:{server.server_port}/"
            thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="ocsp-responder")
            thread.start()
            try:
                yield running
            finally:
                server.shutdown()
                thread.join()


class _Server(ThreadingHTTPServer):
    """`block_on_close` is set: when the context ends, all threads have ended, and no client can delay it."""

    daemon_threads = False
    request_queue_size = _MOST_AT_ONCE

    def __init__(self, address: tuple[str, int], running: RunningResponder) -> None:
        self.running = running
        self._open: dict[socket.socket, int] = {}
        """Open connections, and since when (ns)."""
        super().__init__(address, _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        """The next connection, recorded with its time."""
        connection, address = super().get_request()
        self._open[connection] = now_ns()
        return connection, address

    def verify_request(self, request: object, client_address: object) -> bool:
        """Whether there are not too many connections."""
        return len(self._open) <= _MOST_AT_ONCE

    def service_actions(self) -> None:
        """Close connections over their total time limit: one byte now and then evades a read timeout."""
        begun = now_ns() - _LONGEST_NS
        for connection, since in list(self._open.items()):
            if since < begun:
                _break_off(connection)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection and close it."""
        self._open.pop(request, None)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Close all open connections."""
        for connection in list(self._open):
            _break_off(connection)
        super().server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnected or timed out: these are not errors of the responder."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def _break_off(connection: socket.socket) -> None:
    with suppress(OSError):  # already closed
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _RECEIVE_TIMEOUT_S
    server_version = "labconsole"
    sys_version = ""

    def do_POST(self) -> None:
        """RFC 6960, A.1: the request is the body."""
        if self.headers.get_content_type() != _REQUEST_TYPE:
            self.send_error(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
            return
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            self.send_error(HTTPStatus.LENGTH_REQUIRED)
        elif len(length) > len(str(_LONGEST_REQUEST)) or int(length) > _LONGEST_REQUEST:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            self._answer(self.rfile.read(int(length)))

    def do_GET(self) -> None:
        """RFC 6960, A.1: the request is the path, in base64."""
        try:
            request = base64.b64decode(unquote_to_bytes(self.path.lstrip("/")), validate=True)
        except binascii.Error:
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        self._answer(request)

    def _answer(self, request: bytes) -> None:
        response = self.server.running.answer(request)
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", _RESPONSE_TYPE)
        self.send_header("Content-Length", str(len(response)))
        self.end_headers()
        self.wfile.write(response)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing: answers are counted, and a console's output is not a web server's log."""


class ServeOcspParameters(UnlockParameters):
    """An OCSP responder that answers for a CA until it is cancelled."""

    authority: CertificateChoice
    port: int = parameter("Port", "On loopback (127.0.0.1); 0: any free one", default=0, ge=0, le=65_535, kind="port")


class ServeOcsp(PkiOperation[ServeOcspParameters]):
    """Answers OCSP requests until it is cancelled."""

    name: ClassVar[str] = "certificates.serve-ocsp"
    title: ClassVar[str] = "Serve OCSP"
    description: ClassVar[str] = (
        "Answers on this machine, by HTTP, whether certificates of the CA are revoked (OCSP), until it is cancelled. "
        "What is revoked meanwhile is reported at once."
    )
    parameters: ClassVar[type[Parameters]] = ServeOcspParameters
    runs_until_cancelled: ClassVar[bool] = True

    def needs(self, parameters: ServeOcspParameters, directory: Path, snapshot: Snapshot) -> tuple[SecretRequest, ...]:
        authority = certificate_named(snapshot, parameters.authority)
        return key_secrets(directory, snapshot, authority, unlock=parameters.unlock())

    def work(
        self, parameters: ServeOcspParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        authority = certificate_named(store.snapshot(), parameters.authority)
        name = short_name(authority.certificate)
        with serving(store, authority, port=parameters.port, prompt=prompt) as running:
            context.say(f"The OCSP responder of {name} answers at {running.url} until it is cancelled.")
            while not context.stop_requested:
                time.sleep(_POLL_S)
        text = f"The OCSP responder has stopped; requests that it answered: {running.answered}."
        return Result((text,), {"authority": name, "url": running.url, "answered": running.answered})
