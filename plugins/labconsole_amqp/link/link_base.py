"""The base of sending and receiving links: attach, detach, and the reasons that a peer gives."""

from __future__ import annotations

import itertools
import time
from typing import Any

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole_amqp.link.connection import Connection
from labconsole_amqp.link.proton_engine import condition_text, decode_c_string, ffi, lib, refuse_link
from labconsole_amqp.link.socket_pump import ConnectionLostError

ATTACH_TIMEOUT_S = 10.0
_DETACH_TIMEOUT_S = 1.0
_PASSING = ("amqp:internal-error", "amqp:connection:forced", "amqp:link:detach-forced")
"""Reasons of a broker that stops: RabbitMQ ends the sessions before it closes connections, with the first one."""

_link_numbers = itertools.count()


class Link:
    """Base of sender and receiver: session and link, attach, and a check for their close by the peer."""

    def __init__(self, connection: Connection, address: str, kind: str) -> None:
        self.connection = connection
        self.address = address
        self._kind = kind
        if connection.engine.is_server:
            self._link: Any = self._awaited_link()
            self._session: Any = lib.pn_link_session(self._link)
            self.name = ffi.string(lib.pn_link_name(self._link))
            return
        self._session = lib.pn_session(connection.engine.connection)
        self.name = f"{kind}-{address}-{next(_link_numbers)}".encode()
        make = lib.pn_sender if kind == "sender" else lib.pn_receiver
        self._link = make(self._session, self.name)

    def _awaited_link(self) -> Any:
        """The link that the peer attaches, which has to send to the address. Raises UserError: it is another one."""
        engine, peer = self.connection.engine, self.connection.endpoint.name
        opened = lib.PN_LOCAL_UNINIT | lib.PN_REMOTE_ACTIVE
        late = f"{peer} did not attach a sender to {self.address} in {ATTACH_TIMEOUT_S:g} s"
        self.connection.wait(lambda: bool(lib.pn_link_head(engine.connection, opened)), ATTACH_TIMEOUT_S, late)
        engine.awaits_link = False
        link = lib.pn_link_head(engine.connection, opened)
        address = decode_c_string(lib.pn_terminus_get_address(lib.pn_link_remote_target(link)))
        if lib.pn_link_is_receiver(link) and address == self.address:
            return link
        lib.pn_session_open(lib.pn_link_session(link))
        refuse_link(link, f"only a sender to {self.address} is awaited")
        self._flush()
        raise UserError(f"{peer} did not attach a sender to {self.address}: enter the same address there")

    def _attach(self, own: Any, remote: Any, timeout_s: float) -> int:
        """Attach with `own` terminus at the address and wait for the answer; returns how long it took, ns.

        A link that the peer has attached is answered.
        """
        began = now_ns()
        if is_answer := self.connection.engine.is_server:
            lib.pn_terminus_copy(lib.pn_link_source(self._link), lib.pn_link_remote_source(self._link))
            lib.pn_terminus_copy(lib.pn_link_target(self._link), lib.pn_link_remote_target(self._link))
        else:
            lib.pn_terminus_set_address(own, self.address.encode())
        lib.pn_session_open(self._session)
        lib.pn_link_open(self._link)
        if is_answer:
            return now_ns() - began
        late = f"{self.connection.endpoint.name} did not answer the attach to {self.address} in {timeout_s:g} s"

        def answered() -> bool:
            self._check()
            # A refused attach is answered without an address, and a detach with the reason follows.
            return bool(
                lib.pn_link_state(self._link) & lib.PN_REMOTE_ACTIVE
                and decode_c_string(lib.pn_terminus_get_address(remote))
            )

        try:
            self.connection.wait(answered, timeout_s, late)
        except ConnectionLostError:
            self._check()  # the reason may have come together with the close of the connection
            raise
        return now_ns() - began

    def _check(self) -> None:
        """Raises ConnectionLostError if the peer has closed link or session and may serve again, else UserError."""
        if not (lib.pn_link_state(self._link) | lib.pn_session_state(self._session)) & lib.PN_REMOTE_CLOSED:
            return
        condition = condition_text(lib.pn_link_remote_condition(self._link)) or condition_text(
            lib.pn_session_remote_condition(self._session)
        )
        peer = self.connection.endpoint.name
        if condition and "not-found" in condition:
            raise UserError(
                f"{peer} has no queue {self.address}: create it there, or correct the address ({condition})"
            )
        sentence = f"{peer} ended the {self._kind}'s link to {self.address}: {condition or 'no reason given'}"
        raise ConnectionLostError(sentence) if (condition or "").startswith(_PASSING) else UserError(sentence)

    @property
    def is_ended_well(self) -> bool:
        """Whether the peer has ended link, session or connection, and names no error."""
        engine = self.connection.engine
        states = lib.pn_link_state(self._link) | lib.pn_session_state(self._session)
        ended = engine.remote_closed or states & lib.PN_REMOTE_CLOSED
        conditions = lib.pn_link_remote_condition(self._link), lib.pn_session_remote_condition(self._session)
        return bool(ended) and not (engine.condition or any(map(condition_text, conditions)))

    def pump(self, timeout_s: float) -> None:
        """`Connection.pump`, and raise UserError if the peer has ended this link."""
        self.connection.pump(timeout_s)
        self._check()

    def _flush(self) -> None:
        """Write as much as the socket accepts; a lost connection is reported by the next `pump`."""
        try:
            self.connection.flush()
        except UserError:
            return

    def close(self) -> None:
        """Detach; deliveries that are not settled return to the queue. Raises UserError if the connection is lost.

        The answer is awaited for at most 1 s: RabbitMQ 3.10 never answers a detach, and sometimes not even the
        end of a session. What is left ends with the connection.
        """
        lib.pn_link_close(self._link)
        lib.pn_session_close(self._session)
        deadline = time.monotonic() + _DETACH_TIMEOUT_S
        while not (answered := lib.pn_session_state(self._session) & lib.PN_REMOTE_CLOSED):
            if (left := deadline - time.monotonic()) <= 0:
                break
            self.connection.pump(left)
        if answered:
            lib.pn_session_free(self._session)
