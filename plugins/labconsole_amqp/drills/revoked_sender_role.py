"""The sender of a revocation drill: it is turned away in the middle of its work, and records that."""

from __future__ import annotations

from typing import Any

from labconsole.errors import UserError
from labconsole_amqp.roles.sender_role import SenderRole

TURNED_AWAY = "sender turned away"
"""Event: the sender has lost its connection and could not restore it; data: sent."""


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
