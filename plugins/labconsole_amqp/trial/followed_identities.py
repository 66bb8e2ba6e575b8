"""Follows the certificate database during a run: what changes there for a role reaches the role at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from labconsole.errors import UserError
from labconsole.model.trial import Level, RoleHandle, RunContext
from labconsole.security.pki.identities import NamedIdentities
from labconsole.security.pki.reader import PkiReader
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.roles.role_settings import RoleIdentities, use_command
from labconsole_amqp.series import IDENTITIES_CHANGED
from labconsole_amqp.trial.identities import RoleName, RunIdentities

_INTERVAL_S = 0.1

RolesByName = Mapping[RoleName, Sequence[RoleHandle]]


@contextmanager
def following_identities(
    parameters: AmqpParameters, roles: RolesByName, context: RunContext, directory: Path | None = None
) -> Iterator[None]:
    """Within the block, send each of `roles` its named identities, their trust and CRLs, whenever they change.

    `directory` is that of the database, the user's own where none is named. Without named identities there is nothing
    to follow. Raises UserError: the database cannot be opened.
    """
    identities = RunIdentities(parameters)
    if not parameters.tls or not any(identities.name(role) for role in roles):
        yield
        return
    over = threading.Event()
    with PkiReader.open(directory) as reader:
        followed = _FollowedIdentities(parameters, roles, context, reader)
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

    def __init__(self, parameters: AmqpParameters, roles: RolesByName, context: RunContext, reader: PkiReader) -> None:
        self._parameters, self._roles, self._context, self._reader = parameters, roles, context, reader
        self._late: list[tuple[RoleHandle, RoleIdentities]] = []
        self._seen = reader.snapshot()
        self._in_use = self._now()

    def follow(self, over: threading.Event) -> None:
        """Follow the database until `over`; a fault there is recorded, and the roles keep what they have."""
        while not over.wait(_INTERVAL_S):
            for role, identities in self._late:
                role.command(use_command(identities))
            self._late = []
            try:
                self._send_changes()
            except UserError as fault:
                sentence = f"The roles keep the identities that they have: {fault}"
                self._context.event(IDENTITIES_CHANGED, sentence, Level.WARNING, roles=[])

    def _send_changes(self) -> None:
        if (snapshot := self._reader.snapshot()) is self._seen:
            return
        self._seen = snapshot
        before, self._in_use = self._in_use, self._now()
        changed = [name for name, identities in self._in_use.items() if before[name] != identities]
        if changed:
            sentence = f"The certificate database has changed, for the run's {' and '.join(changed)}."
            self._context.event(IDENTITIES_CHANGED, sentence, roles=changed)
        for name in changed:
            for role in self._roles[name]:
                if name == "sender":
                    self._late.append((role, self._in_use[name]))
                else:
                    role.command(use_command(self._in_use[name]))

    def _now(self) -> dict[RoleName, RoleIdentities]:
        identities = RunIdentities(self._parameters, NamedIdentities(self._reader.directory, in_use=self._seen))
        return {name: identities.of_role(name) for name, roles in self._roles.items() if roles}
