"""The broker role: the embedded broker in a process of its own, with one port and the queues of the run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from labconsole.clock import now_ns
from labconsole.model.role import Role, RoleContext
from labconsole.model.trial import Level
from labconsole.security.identities import LoadedIdentity
from labconsole_amqp.broker.embedded_broker import Broker, BrokerSettings
from labconsole_amqp.broker.queue import QueueLimits
from labconsole_amqp.roles.role_commands import MEASURE_COMMAND
from labconsole_amqp.roles.role_keys import keeps_identities, load_own_identity, report_use, use_newest
from labconsole_amqp.roles.role_settings import RoleSettings, tls_settings
from labconsole_amqp.series import QUEUE_DEPTH, WORK_DONE

_DEPTH_NS = 100_000_000
"""Between two rows of a queue's depth."""


class BrokerRole(Role):
    """Serves until it is stopped."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._settings = RoleSettings.model_validate(context.settings)
        self._broker: Broker | None = None
        self._cpu_before_ns = 0
        self._depths = context.series(QUEUE_DEPTH)
        self._due_ns = 0
        self._identity: LoadedIdentity | None = None

    def prepare(self) -> dict[str, Any]:
        """Listen on a free port of the role's address and report both. Raises UserError."""
        parameters = self._settings.parameters
        self._identity = load_own_identity(self._settings, self.context)
        self._broker = Broker(
            BrokerSettings(
                queues=parameters.addresses,
                host=self.context.address,
                plain_port=None if parameters.tls else 0,
                tls_port=0 if parameters.tls else None,
                tls=tls_settings(self._identity, parameters),
                limits=QueueLimits(messages=parameters.queue_depth, max_message_size=parameters.max_message_size),
            ),
            on_refused=lambda reason: self.context.event("refused client", f"Client refused: {reason}.", Level.WARNING),
        )
        ports = self._broker.listen()
        return {"host": self.context.address, "port": ports.tls if parameters.tls else ports.plain}

    def run(self) -> dict[str, Any]:
        """Relay messages."""
        assert self._broker is not None
        self._cpu_before_ns = time.process_time_ns()
        self._broker.serve(lambda: self.context.stop_requested, self._tick)
        relayed = sum(counts.received for counts in self._broker.counts().values())
        self.context.event(
            WORK_DONE,
            f"{relayed} messages relayed.",
            cpu_ns=time.process_time_ns() - self._cpu_before_ns,
            messages=relayed,
        )
        return {"left": sum(self._broker.depths().values())}

    def _tick(self) -> None:
        assert self._broker is not None
        if (at_ns := now_ns()) >= self._due_ns:
            self._due_ns = at_ns + _DEPTH_NS
            depths = self._broker.depths()
            messages = [depths[address] for address in self._settings.parameters.addresses]
            self._depths.extend(at_ns=[at_ns] * len(messages), queue=range(len(messages)), messages=messages)
        command = self.context.take_command()
        if command == MEASURE_COMMAND:
            self._cpu_before_ns = time.process_time_ns()
        elif command is not None:
            self._use(command)
        self.context.tick()

    def _use(self, command: Mapping[str, Any]) -> None:
        """Use other identities from now on, or only trust and CRLs where the own one cannot be opened.

        Connections that are open are judged by them. Raises UserError: they cannot be read.
        """
        if not keeps_identities(self.context, self._settings):
            use_newest(self.context, self._settings, self._settings.using(command), self._use_settings)

    def _use_settings(self, settings: RoleSettings) -> None:
        assert self._broker is not None
        identity = load_own_identity(settings, self.context, (self._settings, self._identity))
        tls = tls_settings(identity, settings.parameters)
        assert identity is not None and tls is not None
        self._broker.use(tls)
        self._settings, self._identity = settings, identity
        report_use(self.context, settings, identity)

    def close(self) -> None:
        """Close all connections."""
        if self._broker is not None:
            self._broker.close()
