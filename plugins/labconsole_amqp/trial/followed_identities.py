"""Follows the certificate database during a run: what changes there for a role reaches the role at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from labconsole.errors import UserError
from labconsole.model.trial import Level, RoleHandle, RunContext
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.roles.role_settings import RoleIdentities, use_command
from labconsole_amqp.series import IDENTITIES_CHANGED
from labconsole_amqp.trial.identities import RoleName, RunIdentities

if TYPE_CHECKING:
    from labconsole.security.pki.reader import PkiReader
    from labconsole.security.pki.snapshot import Snapshot

_INTERVAL_S = 0.1
_ALL_NAMES: tuple[RoleName, ...] = ("sender", "receiver", "broker", "sender_message", "receiver_message")

RolesByName = Mapping[RoleName, Sequence[RoleHandle]]


@contextmanager
def following_identities(
    parameters: AmqpParameters,
    roles: RolesByName,
    given: Mapping[RoleName, RoleIdentities],
    context: RunContext,
    directory: Path | None = None,
) -> Iterator[None]:
    """Within the block, send each of `roles` its named identities, their trust and CRLs, whenever they change.

    `given` is what the roles have: what has changed since they were started reaches them at once. `directory` is that
    of the database, the user's own where none is named. Without named identities there is nothing to follow, and a
    sender and receiver without a broker, which have only one connection, cannot follow.
    Raises UserError: the database cannot be opened.
    """
    identities = RunIdentities(parameters)
    if not parameters.tls or parameters.is_direct or not any(identities.name(role) for role in _ALL_NAMES):
        yield
        return
    # Imported late, with SQLAlchemy: most runs follow none.
    from labconsole.security.pki.reader import PkiReader

    over = threading.Event()
    with PkiReader.open(directory) as reader:
        followed = _FollowedIdentities(parameters, roles, given, context, reader)
        thread = threading.Thread(target=followed.follow, args=(over,), name="identities")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


class _FollowedIdentities:
    """The identities of the roles as the database had them last.

    A change goes to brokers and receivers first, and to senders a moment later: what a sender presents, signs with or
    encrypts to, the others know by then.
    """

    def __init__(
        self,
        parameters: AmqpParameters,
        roles: RolesByName,
        given: Mapping[RoleName, RoleIdentities],
        context: RunContext,
        reader: PkiReader,
    ) -> None:
        self._parameters, self._roles, self._context, self._reader = parameters, roles, context, reader
        self._late: list[tuple[RoleHandle, RoleIdentities]] = []
        self._in_use = dict(given)
        self._seen: Snapshot | None = None
        self._faults: dict[RoleName | None, str] = {}
        """Of each role, or of the database (None): the fault of the last attempt."""

    def follow(self, over: threading.Event) -> None:
        """Follow the database until `over`; what cannot be read is tried again, and the roles keep what they have."""
        while not over.wait(_INTERVAL_S):
            for role, identities in self._late:
                role.command(use_command(identities))
            self._late = []
            try:
                snapshot = self._reader.snapshot()
            except UserError as fault:
                self._report(None, str(fault))
                continue
            self._faults.pop(None, None)
            if snapshot is not self._seen and self._send_changes(snapshot):
                self._seen = snapshot

    def _send_changes(self, snapshot: Snapshot) -> bool:
        """Send what has changed; False: not all of it could be read."""
        from labconsole.security.pki.identities import NamedIdentities

        identities = RunIdentities(self._parameters, NamedIdentities(self._reader.directory, in_use=snapshot))
        changed: list[RoleName] = []
        for name in (name for name, roles in self._roles.items() if roles):
            now = self._now(identities, name)
            if self._in_use[name] != now:
                self._in_use[name] = now
                changed.append(name)
        if changed:
            sentence = f"The certificate database has changed, for the run's {' and '.join(changed)}."
            self._context.event(IDENTITIES_CHANGED, sentence, roles=changed)
        for name in changed:
            for role in self._roles[name]:
                if name == "sender":
                    self._late.append((role, self._in_use[name]))
                else:
                    role.command(use_command(self._in_use[name]))
        return not self._faults

    def _now(self, identities: RunIdentities, name: RoleName) -> RoleIdentities:
        """What a role has to use; trust and CRLs alone where its keys or the other end cannot be read."""
        try:
            now = identities.of_role(name)
        except UserError as fault:
            self._report(name, str(fault))
        else:
            self._faults.pop(name, None)
            return now
        before = self._in_use[name]
        try:
            return before.model_copy(update={"identity": identities.files(name)})
        except UserError:  # of the same identity, and reported
            return before

    def _report(self, name: RoleName | None, fault: str) -> None:
        """Record a fault once, until it is another one."""
        if self._faults.get(name) == fault:
            return
        self._faults[name] = fault
        who = f"The run's {name} keeps what it has" if name is not None else "The roles keep what they have"
        self._context.event(IDENTITIES_CHANGED, f"{who}, and it is tried again: {fault}", Level.WARNING, roles=[])
