"""One end of a proving handshake over a socket: performs it, judges the other end, and reports both judgements."""

from __future__ import annotations

import errno
import select
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from cryptography import x509
from OpenSSL import SSL, crypto

from labconsole.clock import now_ns
from labconsole.errors import BadInput, UserError
from labconsole.security.x509 import parsing
from labconsole.security.x509.names import short_name
from labconsole_certificates.exchange.tls_context import TlsObservation

CancelCheck = Callable[[float], bool]
"""Called with the seconds that are left; returns whether the operator has cancelled."""

_POLL_S = 0.1


class WaitCancelledError(UserError):
    """The operator cancelled while waiting for the other end."""


class Deadline:
    """A time limit; `watch` is called at least ten times a second while waiting."""

    def __init__(self, seconds: float, watch: CancelCheck = lambda _left: False) -> None:
        self._deadline = now_ns() + round(seconds * 1e9)
        self._watch = watch

    @property
    def left_s(self) -> float:
        """Seconds that are left; 0 after the time limit."""
        return max(0.0, (self._deadline - now_ns()) / 1e9)

    def to_read(self, source: socket.socket) -> None:
        """Wait until `source` can be read. Raises TimeoutError, WaitCancelledError."""
        self._wait(source, write=False)

    def to_write(self, target: socket.socket) -> None:
        """Wait until `target` can be written. Raises TimeoutError, WaitCancelledError."""
        self._wait(target, write=True)

    def _wait(self, on: socket.socket, *, write: bool) -> None:
        readable, writable = ([], [on]) if write else ([on], [])
        while True:
            left = (self._deadline - now_ns()) / 1e9
            if self._watch(max(0.0, left)):
                raise WaitCancelledError("Cancelled: nothing was proven.")
            if left <= 0:
                raise TimeoutError
            if any(select.select(readable, writable, [], min(left, _POLL_S))):
                return


T = TypeVar("T")

Judge = Callable[[Sequence[x509.Certificate]], tuple[bool, str]]
"""Returns whether an end accepts the certificates that the other one presents (end certificate first), and why."""

_ACCEPTED, _REFUSED = b"\x06", b"\x15"
"""Each end sends one of the two once it has judged the other: in TLS 1.3 a client is done before the server has."""
_MOST_FOREIGN = 65_536
"""Octets that a foreign server may send while it is listened to."""
_NOT_TRUSTED = frozenset({18, 19, 20, 21})
"""Verification errors of x509_vfy.h: the path leads to nothing that is trusted."""


class TlsEndpoint:
    """One end of a handshake: `report` says afterwards, in sentences, how each end judged the other.

    `peer_name` is the other end's name in these sentences, `peer_chain` the certificates that it has, if known here.
    Set `connection` to connect or accept before the handshake.
    """

    def __init__(
        self,
        context: SSL.Context,
        via: socket.socket,
        judge: Judge,
        peer_name: str,
        deadline: Deadline,
        peer_chain: Sequence[x509.Certificate] = (),
    ) -> None:
        via.setblocking(False)
        via.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection = SSL.Connection(context, via)
        self.report = ""
        self.presented: tuple[x509.Certificate, ...] = ()
        """Certificates of the other end, unless TLS itself refused them."""
        self.duration_ns = 0
        """Duration of the TLS handshake, without the judgements that are exchanged after it."""
        self._seen = TlsObservation()
        self.connection.set_app_data(self._seen)
        self._via, self._judge, self._deadline = via, judge, deadline
        self._peer_name, self._peer_chain = peer_name, tuple(peer_chain)

    def handshake_with_console(self) -> bool:
        """Whether both ends accept: performs the handshake, then exchanges judgements with the other console.

        Raises WaitCancelledError.
        """
        try:
            if not self._shake_hands():
                self._wait_for(lambda: self.connection.send(_REFUSED))
                return False
            self._wait_for(lambda: self.connection.send(_ACCEPTED))
            answer = self._wait_for(lambda: self.connection.recv(1))
        except (SSL.Error, OSError) as error:
            self._add(self._why_not(error))
            return False
        if answer == _REFUSED:
            self._add(f"{self._peer_name} refuses this end.")
        elif answer != _ACCEPTED:
            self._add(f"{self._peer_name} did not say that it accepts this end: it seems to be no console that waits.")
        return answer == _ACCEPTED

    def handshake_with_server(self, seconds: float, watch: CancelCheck) -> bool:
        """Whether a foreign server requests the certificate of this end, and does not refuse it within `seconds`.

        Nothing is sent after the handshake. A connection that is reset counts as refused: an alert would be lost with
        it. Raises WaitCancelledError.
        """
        try:
            if not self._shake_hands():
                return False
            if not self._seen.certificate_requested:
                self._add(f"{self._peer_name} asked for no certificate of this end, so nothing is known of its trust.")
                return False
            self._deadline = Deadline(seconds, watch)
            self._add(self._wait_for_refusal(seconds))
        except (SSL.Error, OSError) as error:
            self._add(self._why_not(error))
            return False
        return True

    def send_close_notify(self) -> None:
        """Send close_notify, if the connection is still open."""
        with suppress(SSL.Error):
            self.connection.shutdown()

    def _shake_hands(self) -> bool:
        begun = now_ns()
        self._wait_for(self.connection.do_handshake)
        self.duration_ns = now_ns() - begun
        try:
            self.presented = self._chain()
        except BadInput as refusal:
            self._add(f"Refuses {self._peer_name}: {refusal}")
            return False
        accepted, why = self._judge(self.presented)
        self._add(f"{'Accepts' if accepted else 'Refuses'} {self._peer_name}: {why}")
        return accepted

    def _wait_for_refusal(self, seconds: float) -> str:
        within = f"accepted nothing and refused nothing within {seconds:g} s"
        octets = 0
        try:
            while octets < _MOST_FOREIGN:
                octets += len(self._wait_for(lambda: self.connection.recv(4096)))
        except TimeoutError:
            return f"{self._peer_name} {within}."
        except SSL.ZeroReturnError:
            return f"{self._peer_name} {within}, and closed the connection."
        except SSL.SysCallError as error:
            if error.args[0] != -1:
                raise
            return f"{self._peer_name} {within}, and closed the connection."
        raise ConnectionAbortedError

    def _chain(self) -> tuple[x509.Certificate, ...]:
        """The other end's certificate, then those it sent with it (a server's list lacks the first).

        Raises BadInput: one is not a certificate as its standard says (TLS accepts those if it does not judge).
        """
        leaf = self.connection.get_peer_certificate()
        sent = [*([leaf] if leaf else []), *(self.connection.get_peer_cert_chain() or [])]
        ders = dict.fromkeys(crypto.dump_certificate(crypto.FILETYPE_ASN1, certificate) for certificate in sent)
        return tuple(map(self._received, ders))

    def _received(self, der: bytes) -> x509.Certificate:
        """A certificate of the other end, read by the strict parser. Raises BadInput."""
        return parsing.read_certificate(der, f"What {self._peer_name} shows")

    def _why_not(self, error: Exception) -> str:
        match error:
            case TimeoutError():
                return f"{self._peer_name} did not answer in time."
            case ConnectionAbortedError():
                return f"{self._peer_name} sends without end."
            case SSL.SysCallError(args=(errno.ECONNRESET, *_)) | ConnectionResetError():
                return f"{self._peer_name} reset the connection."
            case SSL.ZeroReturnError() | SSL.SysCallError() | OSError():
                return f"{self._peer_name} closed the connection."
        reason = error.args[0][0][2] if error.args and error.args[0] else "TLS failed"
        if "alert" in reason:
            return f"{self._peer_name} broke off: {reason}."
        if self._seen.error is None:
            return f"{self._peer_name} was not understood: {reason}."
        return f"Refuses {self._peer_name}: {self._why_refused(self._seen.error)}"

    def _why_refused(self, code: int) -> str:
        """Why OpenSSL refused, as the judgement of both libraries puts it; a server sees no chain in this case."""
        try:
            failing = self._received(self._seen.failing) if self._seen.failing else None
            chain = self._peer_chain or self._chain() or ((failing,) if failing and self._seen.depth == 0 else ())
        except BadInput as refusal:
            return str(refusal)
        if not chain:
            what = "" if failing is None else f" of {short_name(failing)}"
            why = "is not trusted here" if code in _NOT_TRUSTED else "does not hold"
            return f"its path{what} {why} (verification error {code} of OpenSSL)."
        accepted, why = self._judge(chain)
        return f"TLS does (verification error {code} of OpenSSL), though its path is accepted." if accepted else why

    def _add(self, sentence: str) -> None:
        self.report = " ".join(filter(None, (self.report, sentence)))

    def _wait_for(self, operation: Callable[[], T]) -> T:
        while True:
            try:
                return operation()
            except SSL.WantReadError:
                self._deadline.to_read(self._via)
            except SSL.WantWriteError:
                self._deadline.to_write(self._via)
