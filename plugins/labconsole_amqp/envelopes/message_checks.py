"""The checks of every hardened envelope once its signature is good: recipient, address, sender, time, replay, key.

A message that was there before is refused as replayed. One that is behind the window of its sender is refused as too
old, since it is not known any more whether it was there. A second delivery after a lost connection (at least once) is
refused in the same way, since its octets do not distinguish it from an attack: the evaluation says what it counts as.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from datetime import datetime

from labconsole_amqp.wire.protected_message import SignedMetadata
from labconsole_amqp.wire.sign_encrypt import Outcome

_MOST_SENDERS = 1024
"""Windows of so many senders are kept; a signer has at most 16 in a run."""


_REASONS = {
    Outcome.REPLAYED: "message {} was there before",
    Outcome.NOT_TIMELY: "message {} is behind the replay window",
}


class ReplayWindow:
    """The latest sequence numbers of one sender. A number is new once, and only within the window."""

    def __init__(self, size: int) -> None:
        """`size`: how far a message may be behind the highest number so far, messages."""
        self._size = size
        self._highest = -1
        self._seen = array("q", [-1]) * size

    def enter(self, sequence: int) -> Outcome:
        """OK, once for each number; else replayed, or not timely where it is behind the window. Takes constant time."""
        place = sequence % self._size
        if sequence <= self._highest - self._size:
            return Outcome.NOT_TIMELY
        if self._seen[place] == sequence:
            return Outcome.REPLAYED
        self._highest = max(self._highest, sequence)
        self._seen[place] = sequence
        return Outcome.OK


Windows = dict[int, ReplayWindow]
"""The windows of one signer, by the index of its senders."""


@dataclass(frozen=True)
class KnownSigner:
    """The validity of the expected signer's certificate."""

    not_before: datetime
    not_after: datetime

    def problem(self, at_ms: int) -> str:
        """Why the signer is refused at a time (ms since the Unix epoch), a clause; empty: it is accepted."""
        if at_ms > self.not_after.timestamp() * 1000:
            return f"the certificate expired on {self.not_after:%Y-%m-%d %H:%M} UTC"
        if at_ms < self.not_before.timestamp() * 1000:
            return f"the certificate is not valid before {self.not_before:%Y-%m-%d %H:%M} UTC"
        return ""


class MessageChecks:
    """Checks the messages of one receiver, in the order of their arrival; not for several threads."""

    def __init__(
        self,
        *,
        sender: str,
        recipient: str,
        address: str,
        signer: KnownSigner,
        tolerance_s: float,
        window: int,
        windows: Windows | None = None,
        used_keys: set[bytes] | None = None,
    ) -> None:
        """`tolerance_s`: how far the creation time may be before or after this computer's; `window`: messages.

        `windows` are those of the signer's key so far, where it has had another certificate. `used_keys` are the ids of
        the keys that have signed a message, where each signs one only.
        """
        self._sender, self._recipient, self._address = sender, recipient, address
        self._signer = signer
        self._tolerance_ms = int(tolerance_s * 1000)
        self._window = window
        self._windows: Windows = {} if windows is None else windows
        self._used_keys = used_keys

    def outcome(self, metadata: SignedMetadata, key_id: bytes, now_ms: int) -> tuple[Outcome, str]:
        """The outcome for a message with a good signature by this key, and the reason.

        A message that is OK is so once.
        """
        if metadata.sender != self._sender:
            return Outcome.UNKNOWN_SIGNER, f"it names {metadata.sender!r} as its sender"
        if problem := self._signer.problem(now_ms):
            return Outcome.SIGNER_REFUSED, problem
        if metadata.recipient != self._recipient:
            return Outcome.OTHER_RECIPIENT, f"it is for {metadata.recipient!r}"
        if metadata.address != self._address:
            return Outcome.OTHER_ADDRESS, f"it is for the address {metadata.address!r}"
        age_ms = now_ms - metadata.created_ms
        if abs(age_ms) > self._tolerance_ms:
            when = f"{age_ms / 1000:.1f} s ago" if age_ms > 0 else f"{-age_ms / 1000:.1f} s in the future"
            return Outcome.NOT_TIMELY, f"it was created {when}"
        outcome, reason = self._order(metadata)
        if outcome is not Outcome.OK or self._used_keys is None:
            return outcome, reason
        if key_id in self._used_keys:
            return Outcome.KEY_USED, f"the key {key_id.hex()} has signed another message"
        self._used_keys.add(key_id)
        return Outcome.OK, ""

    def _order(self, metadata: SignedMetadata) -> tuple[Outcome, str]:
        window = self._windows.get(metadata.sender_index)
        if window is None:
            if len(self._windows) >= _MOST_SENDERS or metadata.sender_index < 0:
                return Outcome.UNKNOWN_SIGNER, f"it is of sender {metadata.sender_index}, which no run has"
            window = self._windows[metadata.sender_index] = ReplayWindow(self._window)
        outcome = window.enter(metadata.sequence)
        return outcome, _REASONS.get(outcome, "").format(metadata.sequence)
