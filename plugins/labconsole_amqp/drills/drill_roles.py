"""The roles of a drill: operators change the certificate database while messages flow; a sender is turned away."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cryptography import x509
from pydantic import BaseModel, ConfigDict

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.model.role import Role, RoleContext
from labconsole.model.trial import Level
from labconsole.security.identities import load_identity
from labconsole.security.pki.identities import NamedIdentities
from labconsole.security.pki.keys import make_key
from labconsole.security.pki.records import CertificateRecord
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.key_types import KeyType
from labconsole_amqp.drills.drill_parameters import Revoked, Rotated
from labconsole_amqp.drills.drill_pki import BROKER, SENDER, SIGNER, DrillPki
from labconsole_amqp.link.connection import ConnectError, ConnectStep, Endpoint, connect
from labconsole_amqp.link.tls import TlsSettings
from labconsole_amqp.roles.link_role import await_connect_command
from labconsole_amqp.roles.sender_role import SenderRole

STEP = "drill step"
"""Event: a step of the drill is in the database; data: `step`."""
OLD_ACCEPTED, OLD_REFUSED = "old identity accepted", "old identity refused"
"""Events of a connection with the old identity: before the drill, and the first that the broker refuses."""
DRILL_DONE = "drill done"
"""Event: the drill was not cut short; what had to happen has had its time."""
TURNED_AWAY = "sender turned away"
"""Event: the sender has lost its connection and could not restore it; data: sent."""
WITHDRAWN = "withdrawn"
"""The step from which on what was before must be refused."""

_SERVER_NAME = "localhost"
_TRY_S = 0.02
_SETTLING_S = 2.0
"""After the last step, for what must happen within this time."""
_LONGEST_TRY_S = 10.0


class OperatorSettings(BaseModel):
    """What the operators do, from `before_s` after T0 on, with `overlap_s` between two steps."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    directory: Path
    before_s: float
    overlap_s: float = 0.0
    rotate: Rotated | None = None
    revoke: Revoked | None = None


class OperatorRole(Role):
    """Rotates or revokes, and connects with the old identity until it is refused."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._settings = OperatorSettings.model_validate(context.settings)
        self._open = ExitStack()

    def prepare(self) -> dict[str, Any]:
        """Open the database, generate keys, and see that the old identity is accepted. Raises UserError."""
        directory = self._settings.directory
        self._pki = DrillPki(self._open.enter_context(PkiStore.open(directory)))
        self._keys = [make_key(directory, KeyType.RSA_2048) for _ in range(2 if self._settings.rotate else 0)]
        files = NamedIdentities(directory).files(SENDER)
        tls = TlsSettings(load_identity(files, "the sender"), server_name=_SERVER_NAME)
        host, port, _ = await_connect_command(self.context)
        self._old = Endpoint(host, port, tls)
        connect(self._old).close()
        self.context.event(OLD_ACCEPTED, "Before the drill the broker accepts the sender's identity.")
        return {}

    def run(self) -> dict[str, Any]:
        """All steps. Raises UserError."""
        self._wait(self.context.start_ns + int(self._settings.before_s * 1e9))
        if self.context.stop_requested:
            return {}
        match self._settings.rotate:
            case Rotated.CLIENT:
                self._rotate(SENDER)
            case Rotated.SERVER:
                self._rotate(BROKER)
            case Rotated.ROOT:
                self._rotate_root()
            case None:
                self._revoke()
        self._wait(now_ns() + int(_SETTLING_S * 1e9))
        if not self.context.stop_requested:
            self.context.event(DRILL_DONE, "All steps of the drill are done.")
        return {}

    def _rotate(self, name: str) -> None:
        before = self._pki.rename(name, self._keys[0])
        self._step("The new certificate has the identity's name; the old one is valid, too.", "named")
        self._overlap()
        self._withdraw(before, x509.ReasonFlags.superseded)
        if name == SENDER:
            self._try_old()

    def _rotate_root(self) -> None:
        new_root, new_key = self._keys
        old = self._pki.add_root(new_root)
        self._step("Both States trust the new root, and the old one, too.", "trusted")
        self._overlap()
        self._pki.rename(SENDER, new_key)
        self._step("The sender has a certificate of the new root.", "named")
        self._overlap()
        self._pki.distrust(old)
        self._step("No State trusts the old root any longer.", WITHDRAWN)
        self._try_old()

    def _revoke(self) -> None:
        with_connection = self._settings.revoke is not Revoked.MESSAGES
        self._withdraw(self._pki.certificate(SENDER if with_connection else SIGNER), x509.ReasonFlags.key_compromise)
        if with_connection:
            self._try_old()

    def _withdraw(self, record: CertificateRecord, reason: x509.ReasonFlags) -> None:
        self._pki.revoke(record, reason)
        self._step(f"A CRL revokes the certificate {record.sha256[:16]}... ({reason.value}).", WITHDRAWN)

    def _step(self, sentence: str, step: str) -> None:
        self.context.event(STEP, sentence, step=step)

    def _overlap(self) -> None:
        self._wait(now_ns() + int(self._settings.overlap_s * 1e9))

    def _wait(self, until_ns: int) -> None:
        while (left_s := (until_ns - now_ns()) / 1e9) > 0 and not self.context.stop_requested:
            time.sleep(min(left_s, 0.05))
            self.context.tick()

    def _try_old(self) -> None:
        """Connect with the old identity again and again, until the broker refuses it."""
        began_ns, tries = now_ns(), 0
        while now_ns() - began_ns < _LONGEST_TRY_S * 1e9 and not self.context.stop_requested:
            tries += 1
            try:
                connect(self._old).close()
            except UserError as refusal:
                if isinstance(refusal, ConnectError) and refusal.step is ConnectStep.TCP:  # it is not there at all
                    self._wait(now_ns() + int(_TRY_S * 1e9))
                    continue
                sentence = f"The broker refuses the old identity, at attempt {tries}: {refusal}."
                self.context.event(OLD_REFUSED, sentence, tries=tries)
                return
            self._wait(now_ns() + int(_TRY_S * 1e9))
        sentence = f"The broker accepted the old identity for {_LONGEST_TRY_S:g} s ({tries} attempts)."
        self.context.event(OLD_ACCEPTED, sentence, Level.WARNING, tries=tries)

    def close(self) -> None:
        """Close the database."""
        self._open.close()


class RevokedSenderRole(SenderRole):
    """A sender that may lose its connection for good."""

    def work(self) -> dict[str, Any]:
        """As `SenderRole`; a connection that could not be restored is recorded. Raises UserError."""
        try:
            return super().work()
        except UserError as refusal:
            if not self.turned_away or self.context.stop_requested:
                raise
            self.context.event(TURNED_AWAY, f"The sender cannot connect again: {refusal}.", sent=self._done)
            return {"sent": self._done, "reconnects": self.reconnects}
