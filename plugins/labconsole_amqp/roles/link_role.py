"""Base of sender and receiver: load, wait for the command to connect, check the queue, attach, work."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.model.role import Role, RoleContext
from labconsole.model.trial import REMEDY, Level
from labconsole.security.identities import LoadedIdentity, load_certificates, require_valid
from labconsole.security.x509.validation.judgement import Purpose
from labconsole_amqp.choices import Leftover
from labconsole_amqp.link.connection import Connection, Endpoint, connect
from labconsole_amqp.link.queue_probe import drain_queue, probe_queue_depth
from labconsole_amqp.link.socket_pump import ConnectionLostError
from labconsole_amqp.link.tls import TlsSettings
from labconsole_amqp.parameters import field_label
from labconsole_amqp.preflight.checks import (
    CheckName,
    Preflight,
    certificate_check,
    connection_checks,
    depth_check,
    full_sentence,
    link_check,
)
from labconsole_amqp.roles.role_keys import keeps_identities, load_own_identity, report_kept, report_use, use_newest
from labconsole_amqp.roles.role_settings import USE_IDENTITIES, RoleSettings, endpoint, require_running, tls_settings
from labconsole_amqp.series import CONNECTED, LINK_LOST, PREFLIGHT, RECONNECTED

_POLL_S = 0.002
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 2.0
"""Between attempts to connect again: twice as long after each, so that many clients do not hold a broker down."""
_STABLE_S = 1.0
"""A connection that is lost earlier than this was not restored: time and pauses continue from the loss before."""


@dataclass
class _Outage:
    """A lost connection, from its loss until another one is stable."""

    began_ns: int
    attempts: int = 0
    pause_s: float = _FIRST_PAUSE_S
    restored_ns: int = 0
    """When there was a connection again; 0: not yet."""


def await_connect_command(context: RoleContext) -> tuple[str, int, int | None]:
    """Wait for a `connect_command`: (host, port, port of a shaper). Raises UserError: the run was stopped."""
    command = await_command(context)
    return command["host"], command["port"], command["shaper"]


def await_command(context: RoleContext) -> dict[str, Any]:
    """Wait for the next command before the run. Raises UserError: the run was stopped."""
    while (command := context.take_command()) is None:
        require_running(context)
        time.sleep(_POLL_S)
    return command


class LinkRole(Role):
    """A role at one end of a connection to the broker."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self.settings = RoleSettings.model_validate(context.settings)
        self.parameters = self.settings.parameters
        self._connection: Connection | None = None
        self._endpoint: Endpoint | None = None
        self._broker = ""
        self._outage: _Outage | None = None
        self.reconnects = 0
        """How often the connection was lost and restored."""
        self.preflight = Preflight(direct=self.parameters.is_direct)
        self._identity: LoadedIdentity | None = None
        self._postponed: deque[dict[str, Any]] = deque()
        """Commands that came while the connection was lost."""

    @property
    def turned_away(self) -> bool:
        """Whether the connection is lost and was not restored."""
        return self._outage is not None and not self._outage.restored_ns

    @property
    def connection(self) -> Connection:
        """The connection, after `prepare`."""
        assert self._connection is not None
        return self._connection

    @abstractmethod
    def load(self, identity: LoadedIdentity | None) -> None:
        """Load everything that needs no broker; `identity` is the role's own. Raises UserError."""

    @abstractmethod
    def use_message_keys(self, identity: LoadedIdentity | None) -> None:
        """Load the keys of messages; again when `settings` name others. Raises UserError."""

    @abstractmethod
    def leave(self) -> str:
        """Get ready to continue on another connection; why messages would be lost by that, else empty.

        Raises UserError.
        """

    @abstractmethod
    def attach(self) -> int:
        """Attach to the queue, again after a lost connection; returns the time until the broker's answer, ns.

        Raises UserError.
        """

    @abstractmethod
    def work(self) -> dict[str, Any]:
        """As `Role.run`. Raises UserError, whose text may be a clause."""

    def check_attached(self) -> None:
        """Do the checks of the preflight that this end has besides, once it is attached. Raises UserError."""

    def take_command(self) -> dict[str, Any] | None:
        """The trial's next command, None without one; those to use other identities are carried out.

        Raises UserError.
        """
        while True:
            command = self._postponed.popleft() if self._postponed else self.context.take_command()
            if command is None or command["do"] != USE_IDENTITIES:
                return command
            if keeps_identities(self.context, self.settings):
                continue
            own = self._identity
            tls = self._use_identities(command)
            check, broker = tls.judging(), self.connection.peer_certificates
            refusal = check.refusal(broker, Purpose.TLS_SERVER) if check is not None else ""
            assert self._identity is not None
            report_use(self.context, self.settings, self._identity, refusal)
            if refusal or own is None or own.certificate != self._identity.certificate:
                with self.restoring():
                    self._move(refusal)

    def _use_identities(self, command: Mapping[str, Any]) -> TlsSettings:
        """Use other identities for the next connection and for messages; where the own one cannot be opened, only trust
        and CRLs. Raises UserError: those cannot be read, or bodies would be encrypted to a refused certificate."""
        return use_newest(self.context, self.settings, self.settings.using(command), self._use)

    def _use(self, settings: RoleSettings) -> TlsSettings:
        before, self.settings = self.settings, settings
        try:
            identity = load_own_identity(settings, self.context, (before, self._identity))
            tls = tls_settings(identity, self.parameters, settings.server_name)
            assert tls is not None and self._endpoint is not None
            self.use_message_keys(identity)
        except UserError:
            self.settings = before
            raise
        self._identity, self._endpoint = identity, replace(self._endpoint, tls=tls)
        return tls

    def _move(self, refusal: str) -> None:
        """Continue on another connection with the identities of now; stay where that fails and the broker of this one
        is not refused. Raises UserError."""
        assert self._endpoint is not None
        began_ns = now_ns()
        try:
            other = connect(self._endpoint)
        except UserError as fault:
            if refusal:
                raise ConnectionLostError(f"{self._broker} is trusted no longer ({refusal})") from fault
            report_kept(self.context, self.settings, str(fault))
            return
        try:
            stays = "" if refusal else self.leave()
        except BaseException:
            other.close()
            raise
        if stays:
            other.close()
            report_kept(self.context, self.settings, stays)
            return
        self._disconnect()
        self._connection = other
        try:
            self.attach()
        except UserError as fault:  # the connection of before is closed: what a lost one allows is allowed here
            raise ConnectionLostError(str(fault)) from fault
        took_ns = now_ns() - began_ns
        self.reconnects += 1
        sentence = f"Moved to another connection in {took_ns / 1e6:.0f} ms."
        self.context.event(RECONNECTED, sentence, took_ns=took_ns, attempts=1, moved=True)

    def prepare(self) -> dict[str, Any]:
        """Load, wait for the command to connect, connect and attach: what was found is the preflight of this end.

        Reports it as `checks`. Raises UserError.
        """
        try:
            with self._in_full_sentences():
                attach_ns = self._connect()
        except UserError as error:
            if (failed := self.preflight.failed) is not None:
                sentence, checks = f"Preflight failed at {failed.name}: {error}", self.preflight.to_json()
                self.context.event(PREFLIGHT, sentence, Level.ERROR, checks=checks)
            raise
        times = self.connection.times
        self.context.event(
            CONNECTED,
            f"Connected in {times.total_ns / 1e6:.1f} ms.",
            connect_ns=times.total_ns,
            attach_ns=attach_ns,
            tls=self.connection.tls_version,
            cipher=self.connection.cipher,
            container=self.connection.container,
            checks=self.preflight.to_json(),
        )
        return {"checks": self.preflight.to_json()}

    def _connect(self) -> int:
        """Connect and attach, and record the checks; returns the time of the attach, ns. Raises UserError."""
        preflight = self.preflight
        self._identity = identity = load_own_identity(self.settings, self.context)
        self.load(identity)
        if identity is not None:
            with preflight.checking(CheckName.OWN_CERTIFICATE):
                require_valid(identity, identity.name)
            chain = load_certificates(identity.certificate_file)
            preflight.add(certificate_check(CheckName.OWN_CERTIFICATE, chain, datetime.now(UTC)))
        self._connection = self.first_connection()
        direct = self.parameters.is_direct
        preflight.add(*connection_checks(self._connection, self.parameters.broker))
        with preflight.checking(CheckName.LINK):
            attach_ns = self.attach()
        preflight.add(link_check(self.settings.role, self.settings.address, attach_ns, direct=direct))
        self.check_attached()
        return attach_ns

    def first_connection(self) -> Connection:
        """Wait for the command to connect, check the queue, and connect. Raises UserError."""
        preflight = self.preflight
        host, port, shaper = await_connect_command(self.context)
        self._broker = preflight.broker = "" if self.parameters.is_direct else f"{host}:{port}"
        tls = tls_settings(self._identity, self.parameters, self.settings.server_name)
        self._endpoint = broker = endpoint(self.parameters, host, port, tls, self.context.secret, shaper)
        if self.settings.check_queue:
            # Over a connection of its own: RabbitMQ does not always answer the end of a link.
            with preflight.checking(CheckName.LINK), connect(broker) as first:
                drained = require_empty_queue(first, self.settings, self.context, preflight)
            preflight.add(depth_check(self.settings.address, 0, PROBED_MESSAGES, drained))
        with preflight.checking(CheckName.TCP):
            return connect(broker)

    def next_connection(self, timeout_s: float) -> Connection:
        """A connection in place of one that is lost. Raises UserError."""
        assert self._endpoint is not None
        longest_s = min(self._endpoint.connect_timeout_s, timeout_s)
        return connect(replace(self._endpoint, connect_timeout_s=longest_s))

    def run(self) -> dict[str, Any]:
        """Work until the end. Raises UserError."""
        with self._in_full_sentences():
            return self.work()

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """If the connection is lost in the block, end the block, and connect and attach again.

        Raises ConnectionLostError if the parameters do not want that, UserError if it was not possible in time.
        """
        try:
            yield
        except ConnectionLostError as lost:
            if not self.parameters.reconnect:
                raise
            self.context.event(LINK_LOST, full_sentence(str(lost), self._broker), Level.WARNING)
            self._reconnect(lost)

    def _reconnect(self, lost: ConnectionLostError) -> None:
        outage, now, fault = self._outage, now_ns(), UserError("it was lost again")
        if outage is None or now - outage.restored_ns > _STABLE_S * 1e9:
            outage = self._outage = _Outage(now)
        outage.restored_ns = 0
        while outage.attempts == 0 or self._waits_for_attempt(outage, lost, fault):
            outage.attempts += 1
            failed = self._connected_again(self.parameters.reconnect - (now_ns() - outage.began_ns) / 1e9)
            if failed is None:
                break
            fault = failed
        outage.restored_ns = now_ns()
        took_ns = outage.restored_ns - outage.began_ns
        self.reconnects += 1
        sentence = f"Connected again after {took_ns / 1e6:.0f} ms, attempt {outage.attempts}."
        self.context.event(RECONNECTED, sentence, took_ns=took_ns, attempts=outage.attempts)

    def _waits_for_attempt(self, outage: _Outage, lost: ConnectionLostError, fault: UserError) -> bool:
        """Wait until the next attempt is due. Raises UserError: there is none."""
        if self.context.stop_requested:
            raise lost
        if (now_ns() - outage.began_ns) / 1e9 + outage.pause_s > self.parameters.reconnect:
            within = f"within {self.parameters.reconnect:g} s ({outage.attempts} attempts)"
            raise UserError(f"{lost}, and could not be restored {within}: {fault}") from fault
        self._pause(outage.pause_s)
        outage.pause_s = min(2 * outage.pause_s, _LONGEST_PAUSE_S)
        return True

    def _connected_again(self, left_s: float) -> UserError | None:
        """Connect and attach in place of the connection that was lost; why it was not possible, else None."""
        self._disconnect()
        try:
            self._connection = self.next_connection(max(_FIRST_PAUSE_S, left_s))
            self.attach()
        except UserError as fault:
            return fault
        return None

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self.context.stop_requested:
            time.sleep(min(left, _FIRST_PAUSE_S))
            self.context.tick()
            command = self.context.take_command()
            if command is not None and command["do"] == USE_IDENTITIES:  # a new certificate may be what is missing
                if not keeps_identities(self.context, self.settings):
                    self._use_identities(command)
            elif command is not None:
                self._postponed.append(command)

    def close(self) -> None:
        """Close the connection."""
        self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()

    @contextmanager
    def _in_full_sentences(self) -> Iterator[None]:
        """Turn the link's faults, which are clauses ("host:port refused the connection"), into sentences."""
        try:
            yield
        except UserError as error:
            raise UserError(full_sentence(str(error), self._broker)) from error


PROBED_MESSAGES = 1000
"""Messages in a queue are counted up to this number."""
_MAX_DRAINED = 1_000_000


def require_empty_queue(
    connection: Connection, settings: RoleSettings, context: RoleContext, preflight: Preflight
) -> int:
    """Drain the role's queue if the parameters say so; returns how many messages.

    Raises UserError: there are some in it.
    """
    parameters, address, drained = settings.parameters, settings.address, 0
    if parameters.leftover is Leftover.DRAIN:
        drained = drain_queue(connection, address, _MAX_DRAINED)
        if drained:
            sentence = f"{drained} messages were in the queue {address} and were discarded."
            context.event("drained", sentence, Level.WARNING)
    depth = probe_queue_depth(connection, address, PROBED_MESSAGES)
    if not depth:
        return drained
    with preflight.checking(CheckName.QUEUE_DEPTH):
        if drained:
            raise UserError(
                f"The queue {address} at {connection.endpoint.name} is still not empty after {drained} "
                "messages were discarded: stop the sender, and run again."
            )
        number = f"{depth} messages" if depth < PROBED_MESSAGES else f"{PROBED_MESSAGES} messages or more"
        context.event(
            REMEDY,
            f"With leftover = {Leftover.DRAIN} the run discards what is in the queue first.",
            title="Drain the queue and run again",
            parameters={"leftover": Leftover.DRAIN.value},
        )
        raise UserError(
            f"The queue {address} at {connection.endpoint.name} is not empty, {number} are in it and would "
            f"distort the figures: empty it there, or set {field_label('leftover')} to {Leftover.DRAIN}."
        )
