"""Authorities over HTTP on loopback: right exchanges, bounds of size and time, and one sentence for each failure."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from labconsole.errors import UserError
from labconsole_v2x.pki import http_transport
from labconsole_v2x.pki.http_transport import (
    CTL_TYPE,
    MOST_CONNECTIONS,
    MOST_LIST_OCTETS,
    MOST_OCTETS,
    REQUEST_TYPE,
    RESPONSE_TYPE,
    AuthorityServer,
    AuthorityUnreachableError,
    ListNotFoundError,
    UnknownListError,
    checked_url,
    get,
    post,
)
from labconsole_v2x.pki.secured_messages import UnreadableRequestError


def echo(octets: bytes) -> bytes:
    if octets == b"unreadable":
        raise UnreadableRequestError("not encrypted data")
    return octets


@pytest.fixture
def server() -> Iterator[AuthorityServer]:
    with AuthorityServer("127.0.0.1", 0, echo) as running:
        yield running


def reply(server: AuthorityServer, method: str, body: bytes | None, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    try:
        connection.request(method, "/", body, {name.replace("_", "-"): value for name, value in headers.items()})
        return connection.getresponse()
    finally:
        connection.close()


@contextmanager
def raw_server(answer: bytes, *, wait_s: float = 0.0, drip_s: float = 0.0) -> Iterator[str]:
    """Listens once, sends `answer` after the request, at once or an octet at a time, and waits."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                connection, _ = listening.accept()
                with connection:
                    received = b""
                    while b"\r\n\r\nrequest" not in received:
                        received += connection.recv(65_536)
                    pieces = [answer] if not drip_s else [bytes((octet,)) for octet in answer]
                    for piece in pieces:
                        connection.sendall(piece)
                        time.sleep(drip_s)
                    time.sleep(wait_s)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_octets_come_back_under_the_content_types_of_the_standard(server: AuthorityServer) -> None:
    assert post(server.url, b"request") == b"request"
    largest = bytes(MOST_OCTETS)
    assert post(server.url + "any/path?of=it", largest) == largest
    response = reply(server, "POST", b"x", Content_Type=REQUEST_TYPE)
    assert (response.status, response.headers["Content-Type"]) == (200, RESPONSE_TYPE)


@pytest.mark.parametrize(
    ("method", "body", "headers", "status"),
    [
        ("GET", None, {}, 501),
        ("POST", b"x", {}, 415),
        ("POST", b"x", {"Content_Type": "text/plain"}, 415),
        ("POST", b"", {"Content_Type": REQUEST_TYPE, "Content_Length": "-1"}, 411),
        ("POST", b"", {"Content_Type": REQUEST_TYPE, "Content_Length": "9" * 30}, 411),
        ("POST", b"", {"Content_Type": REQUEST_TYPE, "Content_Length": str(MOST_OCTETS + 1)}, 413),
        ("POST", b"unreadable", {"Content_Type": REQUEST_TYPE}, 400),
    ],
)
def test_other_requests_are_refused(
    server: AuthorityServer, method: str, body: bytes | None, headers: dict[str, str], status: int
) -> None:
    assert reply(server, method, body, **headers).status == status
    assert post(server.url, b"next") == b"next"


@pytest.mark.serial
def test_slow_and_silent_clients_are_cut_and_others_are_served(
    server: AuthorityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_transport, "TIMEOUT_S", 0.6)
    clients = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(MOST_CONNECTIONS + 3)]
    begin = time.monotonic()
    try:
        # One octet at a time, each within the timeout of a socket: the limit is that of the whole request.
        for octet in b"POST / HTTP/1.0\r\nX-Slow: 0123456789":
            with suppress(OSError):
                clients[0].sendall(bytes((octet,)))
            time.sleep(0.05)
        clients[0].settimeout(5)
        with suppress(ConnectionResetError):
            assert clients[0].recv(100) == b""
        assert time.monotonic() - begin < 5
        assert post(server.url, b"served") == b"served"
    finally:
        for client in clients:
            client.close()


def test_a_flood_of_connections_leaves_the_server_with_its_threads(server: AuthorityServer) -> None:
    before = threading.active_count()
    clients = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(100)]
    try:
        time.sleep(0.3)
        # A thread and a timer for each connection that is served.
        assert threading.active_count() - before <= 2 * MOST_CONNECTIONS
    finally:
        for client in clients:
            client.close()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "does not answer"),
        (b"garbage\r\n\r\n", "not HTTP"),
        (b"HTTP/1.0 404 Not Found\r\n\r\nno EA here", "HTTP 404, no EA here"),
        (b"HTTP/1.0 302 Found\r\nLocation: http://x/\r\n\r\n", "HTTP 302"),
        (b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<html>", "something else"),
        (b"HTTP/1.0 200 OK\r\nContent-Type: application/x-its-response\r\n\r\n", "something else"),
        (
            b"HTTP/1.0 200 OK\r\nContent-Type: application/x-its-response\r\nContent-Length: 9\r\n\r\nx",
            "something else",
        ),
        (b"HTTP/1.0 200 OK\r\nContent-Type: application/x-its-response\r\n\r\n" + bytes(70_000), "something else"),
    ],
)
def test_an_authority_that_answers_garbage_is_one_sentence_with_its_url(answer: bytes, reason: str) -> None:
    with raw_server(answer) as url, pytest.raises(AuthorityUnreachableError) as failure:
        post(url, b"request")
    sentence = str(failure.value)
    assert url in sentence and reason in sentence and sentence.count(". ") == 0 and "\n" not in sentence


@pytest.mark.serial
def test_an_authority_that_does_not_answer_in_time_is_one_sentence_with_its_url() -> None:
    begin = time.monotonic()
    with (
        raw_server(b"HTTP/1.0 200", wait_s=1.5) as url,
        pytest.raises(AuthorityUnreachableError, match=r"within 0\.5 s"),
    ):
        post(url, b"request", timeout_s=0.5)
    assert time.monotonic() - begin < 3


@pytest.mark.serial
def test_an_authority_that_answers_an_octet_at_a_time_is_cut() -> None:
    begin = time.monotonic()
    answer = b"HTTP/1.0 200 OK\r\nContent-Type: application/x-its-response\r\n\r\n" + bytes(40)
    with raw_server(answer, drip_s=0.05) as url, pytest.raises(AuthorityUnreachableError, match=r"not within"):
        post(url, b"request", timeout_s=0.5)
    assert time.monotonic() - begin < 3


def test_an_unused_port_and_a_port_in_use_are_reported(server: AuthorityServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(AuthorityUnreachableError, match=f"http://127.0.0.1:{port}/ does not answer"):
        post(f"http://127.0.0.1:{port}/", b"request")
    with pytest.raises(UserError, match=f"127.0.0.1:{server.server_port} cannot be listened on"):
        AuthorityServer("127.0.0.1", server.server_port, echo)
    with pytest.raises(UserError, match="cannot be listened on"):
        AuthorityServer("host.invalid", 0, echo)


@pytest.mark.parametrize(
    "url",
    ["", "ea", "ftp://ea/", "http://", "http://:80/", "http://ea:99999/", "http://ea:x/", "http://e a/\n", "http://é/"],
)
def test_what_is_not_a_url_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="is not the URL of an authority"):
        checked_url(url)


def centre(path: str) -> tuple[str, bytes]:
    sizes = {"/largest": MOST_LIST_OCTETS, "/too-large": MOST_LIST_OCTETS + 1, "/empty": 0}
    if path in sizes:
        return CTL_TYPE, bytes(sizes[path])
    if path == "/page":
        return "text/html", b"<html>"
    raise UnknownListError("no such list")


def test_lists_come_by_get_within_bounds() -> None:
    with AuthorityServer("127.0.0.1", 0, answer_get=centre) as server:
        assert len(get(f"{server.url}largest")) == MOST_LIST_OCTETS
        for path in ("too-large", "empty", "page"):
            with pytest.raises(AuthorityUnreachableError, match=f"{path} answers something else than {CTL_TYPE}"):
                get(f"{server.url}{path}")
        with pytest.raises(ListNotFoundError, match="HTTP 404, no such list"):
            get(f"{server.url}none")
        with pytest.raises(AuthorityUnreachableError, match="HTTP 501, GET a list"):
            post(server.url, b"request")


def test_an_authority_has_no_lists_and_a_silent_centre_is_left(server: AuthorityServer) -> None:
    with pytest.raises(AuthorityUnreachableError, match=r"HTTP 501, POST application/x-its-request"):
        get(server.url)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(AuthorityUnreachableError, match=r"does not answer .not within 0\.3 s"):
            get(url, timeout_s=0.3)
