"""Messages of TS 102 941 over HTTP: a server for authorities (POST) and distribution centres (GET), and requests.

All are bounded. The content types are those of TS 102 941, annex D, unless others are given.
"""

from __future__ import annotations

import http.client
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from labconsole.errors import UserError
from labconsole.safe_text import shown
from labconsole_v2x.pki.secured_messages import DeniedRequestError, UnreadableRequestError

REQUEST_TYPE, RESPONSE_TYPE = "application/x-its-request", "application/x-its-response"


class ContentTypes(NamedTuple):
    """The content types of a request and of its response."""

    request: str = REQUEST_TYPE
    response: str = RESPONSE_TYPE


PKI_TYPES = ContentTypes()
MOST_OCTETS = 65_536
"""Of a request or response: those of one certificate have some 1,000."""
MOST_LIST_OCTETS = 1 << 20
"""Of a list: an entry has some 200."""
CTL_TYPE, CRL_TYPE = "application/x-its-ctl", "application/x-its-crl"
_LIST_TYPES = (CTL_TYPE, CRL_TYPE, "application/octet-stream")
"""The content types of lists: the EU's ECTL comes as plain octets."""
TIMEOUT_S = 10.0
"""Until a whole request was received, and until an authority has answered another one."""
STATION_TIMEOUT_S = 25.0
"""Until a station has its response: the AA asks the EA in between."""
MOST_CONNECTIONS = 32
"""At the same time; further ones are closed."""
_MOST_REASON = 300
"""Octets of the reason in an answer that are shown."""
_CONNECTIONS = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}


class AuthorityUnreachableError(UserError):
    """An authority that does not answer, or answers something that is not a response; names the URL."""


class UnknownListError(Exception):
    """A path with no list at it; the text is the reason."""


class ListNotFoundError(AuthorityUnreachableError):
    """A distribution centre that has no such list (HTTP 404)."""


def post(
    url: str, octets: bytes, timeout_s: float = STATION_TIMEOUT_S, content_types: ContentTypes = PKI_TYPES
) -> bytes:
    """The response to a request. Raises `AuthorityUnreachableError`: none, too late, too large, or another kind."""
    request_type, response_type = content_types
    return _exchange("POST", url, octets, (response_type,), MOST_OCTETS, timeout_s, request_type)


def get(url: str, timeout_s: float = STATION_TIMEOUT_S) -> bytes:
    """A list of a distribution centre. Raises `AuthorityUnreachableError`, `ListNotFoundError` where it has none."""
    return _exchange("GET", url, None, _LIST_TYPES, MOST_LIST_OCTETS, timeout_s)


def _exchange(
    method: str,
    url: str,
    octets: bytes | None,
    types: Sequence[str],
    most_octets: int,
    timeout_s: float,
    request_type: str = REQUEST_TYPE,
) -> bytes:
    """The body of a response of one of these content types. Raises `AuthorityUnreachableError`."""
    parts = urlsplit(checked_url(url))
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    begin = time.monotonic()
    try:
        with closing(_CONNECTIONS[parts.scheme](parts.netloc, timeout=timeout_s)) as connection:
            connection.connect()
            with _cut_after(timeout_s, connection.sock):
                headers = {"Content-Type": request_type} if octets is not None else {}
                connection.request(method, path, octets, headers)
                response = connection.getresponse()
                body: bytes = response.read(most_octets + 1)
        if time.monotonic() - begin >= timeout_s:
            raise TimeoutError
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or "the connection ended, or its answer is not HTTP"
        if time.monotonic() - begin >= timeout_s:
            reason = f"not within {timeout_s:g} s"
        raise AuthorityUnreachableError(
            f"{url} does not answer ({reason}): check the URL and the authority."
        ) from error
    if response.status != http.HTTPStatus.OK:
        why = shown(body[:_MOST_REASON].decode(errors="replace").strip() or response.reason)
        if method == "POST" and response.status == http.HTTPStatus.BAD_REQUEST:
            raise AuthorityUnreachableError(
                f"{url} cannot read the request (HTTP 400, {why}): give the certificate of the authority at this URL."
            )
        if method == "POST" and response.status == http.HTTPStatus.FORBIDDEN:
            raise AuthorityUnreachableError(f"{url} refuses: {why}.")
        what = "URL and its certificate" if method == "POST" else "URL"
        refusal = ListNotFoundError if method == "GET" and response.status == http.HTTPStatus.NOT_FOUND else None
        raise (refusal or AuthorityUnreachableError)(
            f"{url} refuses the request (HTTP {response.status}, {why}): check the {what}."
        )
    is_whole = 0 < len(body) <= most_octets and not response.length
    if response.headers.get_content_type() not in types or not is_whole:
        raise AuthorityUnreachableError(f"{url} answers something else than {types[0]}: check the URL.")
    return body


def checked_url(url: str) -> str:
    """The URL, if it is one of an authority. Raises UserError."""
    try:
        parts = urlsplit(url)
        if parts.scheme in _CONNECTIONS and parts.hostname and parts.port != 0 and url.isascii() and url.isprintable():
            return url
    except ValueError:  # the port
        pass
    raise UserError(f"{shown(url)} is not the URL of an authority: write it as http://host:port/.")


@contextmanager
def _cut_after(timeout_s: float, connection: socket.socket) -> Iterator[threading.Timer]:
    """End a connection after a time, whatever it does: the timeout of a socket counts from each octet again."""

    def cut() -> None:
        with suppress(OSError):  # closed by then
            connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(timeout_s, cut)
    timer.daemon = True
    timer.start()
    try:
        yield timer
    finally:
        timer.cancel()


AnswerPost = Callable[[bytes], bytes]
AnswerGet = Callable[[str], tuple[str, bytes]]
"""The content type and octets at a path. Raises `UnknownListError`."""


class AuthorityServer(ThreadingHTTPServer):
    """Serves an authority's `answer`, or a centre's `answer_get`, on a host and port (0: any); `url` is its address."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 2 * MOST_CONNECTIONS

    def __init__(
        self,
        host: str,
        port: int,
        answer: AnswerPost | None = None,
        answer_get: AnswerGet | None = None,
        *,
        content_types: ContentTypes = PKI_TYPES,
    ) -> None:
        """Raises UserError: the port is in use, or the host is not one of this computer."""
        self.answer = answer
        self.answer_get = answer_get
        self.content_types = content_types
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UserError(f"{host}:{port} cannot be listened on ({reason}): choose another host or port.") from error
        self.url = f"http://{host}:{self.server_port}/"

    def __enter__(self) -> Self:
        """Serve, in a thread."""
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, name="authority")
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop serving; requests in progress are not answered any more."""
        self.shutdown()
        self._thread.join()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, unless there are too many."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print what is not the connection's: a client that leaves early is not an error here."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    timeout = TIMEOUT_S
    server: AuthorityServer

    def handle(self) -> None:
        """Answer one request, which must be received in time."""
        with _cut_after(TIMEOUT_S, self.connection) as self._timer:
            super().handle()

    def do_GET(self) -> None:
        """Answer with a list."""
        self._timer.cancel()
        if self.server.answer_get is None:
            self._reply(http.HTTPStatus.NOT_IMPLEMENTED, f"POST {REQUEST_TYPE}".encode())
            return
        try:
            content_type, octets = self.server.answer_get(self.path)
        except UnknownListError as error:
            self._reply(http.HTTPStatus.NOT_FOUND, str(error).encode())
        else:
            self._reply(http.HTTPStatus.OK, octets, content_type)

    def do_POST(self) -> None:
        """Answer a request."""
        length = self.headers.get("Content-Length", "")
        answer, wanted = self.server.answer, self.server.content_types.request
        if answer is None:
            self._reply(http.HTTPStatus.NOT_IMPLEMENTED, b"GET a list")
        elif self.headers.get_content_type() != wanted:
            self._reply(http.HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send {wanted}".encode())
        elif not (length.isascii() and length.isdigit() and len(length) < 10):
            self._reply(http.HTTPStatus.LENGTH_REQUIRED, b"send a Content-Length")
        elif int(length) > MOST_OCTETS:
            self._reply(http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b"at most %d octets" % MOST_OCTETS)
        else:
            octets = self.rfile.read(int(length))
            self._timer.cancel()
            if len(octets) < int(length):
                return
            try:
                self._reply(http.HTTPStatus.OK, answer(octets), self.server.content_types.response)
            except UnreadableRequestError as error:
                self._reply(http.HTTPStatus.BAD_REQUEST, str(error).encode())
            except DeniedRequestError as error:
                self._reply(http.HTTPStatus.FORBIDDEN, str(error).encode())

    def _reply(self, status: http.HTTPStatus, body: bytes, content_type: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the authority reports its decisions."""
