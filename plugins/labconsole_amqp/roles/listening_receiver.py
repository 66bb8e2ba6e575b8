"""The receiver role without a broker: it listens, and its sender connects to it."""

from __future__ import annotations

import time

from labconsole.errors import UserError
from labconsole.model.role import RoleContext
from labconsole.model.trial import Level
from labconsole_amqp.link.connection import Connection
from labconsole_amqp.link.listener import Listener
from labconsole_amqp.preflight.checks import CheckName
from labconsole_amqp.roles.receiver_role import ReceiverRole
from labconsole_amqp.roles.role_keys import load_port_identity
from labconsole_amqp.roles.role_settings import require_running, tls_settings


class ListeningReceiverRole(ReceiverRole):
    """Reports where it listens once it has loaded, and receives from the sender that connects there.

    A sender that has lost its connection may connect again, as often as the parameters allow.
    """

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._listener: Listener | None = None

    def first_connection(self) -> Connection:
        """Listen, report address and port, and accept the sender. Raises UserError: the run was stopped before."""
        tls = tls_settings(load_port_identity(self.settings, self.context), self.parameters)
        with self.preflight.checking(CheckName.TCP):
            self._listener = listener = Listener(self.context.address, tls, self._record_refused)
        self.context.report(host=self.context.address, port=listener.port)
        connection = listener.accept(lambda: not self.context.stop_requested)
        if connection is None:
            require_running(self.context)
        assert connection is not None
        return connection

    def next_connection(self, timeout_s: float) -> Connection:
        """The next connection of a sender. Raises UserError: none came in time."""
        assert self._listener is not None
        deadline = time.monotonic() + timeout_s

        def is_awaited() -> bool:
            self.context.tick()
            return not self.context.stop_requested and time.monotonic() < deadline

        connection = self._listener.accept(is_awaited)
        if connection is None:
            raise UserError("no sender has connected again")
        return connection

    def _record_refused(self, reason: str) -> None:
        self.context.event("refused client", f"Client refused: {reason}.", Level.WARNING)

    def close(self) -> None:
        """Close connection and port."""
        super().close()
        if self._listener is not None:
            self._listener.close()
