"""The receiving end of the fast link: batches of messages, checked against templates by numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole_amqp.link.connection import Connection
from labconsole_amqp.link.link_base import ATTACH_TIMEOUT_S, Link
from labconsole_amqp.link.proton_engine import ENGINE_BYTES, ffi, lib
from labconsole_amqp.wire.template import Template

_BATCH_MESSAGES = 512
_BATCH_BYTES = 2 * 1024 * 1024  # from 256 KB on the size makes no difference
_ROOM_FOR_ADDITIONS = 256


@dataclass(frozen=True, slots=True)
class Batch:
    """Received messages in order; all arrays have one element per message.

    `received_ns` is taken as each message is read out of the engine. Where `matched`, the message equals one of the
    receiver's templates, and `stamps_ms` and `numbers` hold its stamp and number (-1 without one); elsewhere
    they are -1, and `raw` maps the message's index to its bytes, for the slow path. A message that the sender aborted
    halfway has size 0 and `raw` b"". `sizes` are bytes of the encoded message.
    """

    received_ns: NDArray[np.int64]
    stamps_ms: NDArray[np.int64]
    numbers: NDArray[np.int64]
    sizes: NDArray[np.int64]
    matched: NDArray[np.bool_]
    raw: dict[int, bytes]

    def __len__(self) -> int:
        return len(self.received_ns)


class Receiver(Link):
    """Receives messages from `address`; each is accepted as it is read, unless the sender had settled it.

    Args:
        window: credit, messages; topped up each quarter.
        settled: ask for pre-settled messages (at most once).
        templates: messages that are checked in the fast path; none if every message must be decoded.
        expected_size: bytes of a usual message, so that it fits into a row; the largest template's size if 0.
        max_message_size: bytes above which an incomplete message is refused; `ENGINE_BYTES` if 0.

    `attach_ns` is how long attaching took, `received` the number of messages so far.

    Raises:
        UserError: the address does not exist, or the peer refused otherwise or did not answer.
    """

    def __init__(
        self,
        connection: Connection,
        address: str,
        *,
        window: int = 1000,
        settled: bool = False,
        templates: Sequence[Template] = (),
        expected_size: int = 0,
        max_message_size: int = 0,
        timeout_s: float = ATTACH_TIMEOUT_S,
    ) -> None:
        super().__init__(connection, address, "receiver")
        self.received = 0
        self._failure: UserError | None = None
        """What ended the gathering of the last batch: raised once what was received is delivered."""
        self._window = window
        self._largest = max_message_size or ENGINE_BYTES
        self._matchers = {len(template.message): _TemplateMatcher(template) for template in templates}
        expected = max(expected_size, *self._matchers) if self._matchers else expected_size
        stride = (expected + _ROOM_FOR_ADDITIONS + 7) // 8 * 8
        rows = max(1, min(_BATCH_MESSAGES, _BATCH_BYTES // stride))
        self._rows = np.zeros((rows, stride), np.uint8)
        self._words = self._rows.view(np.uint64)
        self._buffer = ffi.from_buffer("char[]", self._rows)
        self._starts = [self._buffer + row * stride for row in range(rows)]
        lib.pn_link_set_snd_settle_mode(self._link, lib.PN_SND_SETTLED if settled else lib.PN_SND_UNSETTLED)
        lib.pn_terminus_set_address(lib.pn_link_target(self._link), lib.pn_link_name(self._link))
        lib.pn_link_set_max_message_size(self._link, max_message_size)
        source = lib.pn_link_source(self._link)
        lib.pn_link_flow(self._link, window)
        self.attach_ns = self._attach(source, lib.pn_link_remote_source(self._link), timeout_s)

    def learn(self, template: Template) -> None:
        """Accept messages of this form in the fast path, too: a broker's form of ours, fully checked once.

        It replaces a template of the same length.
        """
        self._matchers[len(template.message)] = _TemplateMatcher(template)

    def receive(self, limit: int, timeout_s: float, gather_s: float = 0.0) -> Batch:
        """The messages that have arrived, at most `limit` and one batch; waits up to `timeout_s` for the first.

        Gathers more for up to `gather_s` after the first, each with its own time of arrival; acknowledgements wait
        meanwhile. So a wake-up for each message costs little more than reading it.

        Raises UserError if the broker closed link or connection, or the connection is lost, and nothing is left to
        be read; or if a message is too large.
        """
        if self._readable:
            # Acknowledgements and credit of the previous batch are sent while the next is read.
            self._flush()
        elif self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        else:
            self.pump(timeout_s)
            self._check_size()
        times: list[int] = []
        sizes: list[int] = []
        raw: dict[int, bytes] = {}
        limit = min(limit, len(self._starts))
        self._read(limit, times, sizes, raw)
        if times and gather_s:
            self._gather(limit, times, sizes, raw, times[0] + int(gather_s * 1e9))
        self.received += len(times)
        self._top_up_credit()
        return self._check_batch(times, sizes, raw)

    def _gather(self, limit: int, times: list[int], sizes: list[int], raw: dict[int, bytes], end_ns: int) -> None:
        try:
            while len(times) < limit and (left_ns := end_ns - now_ns()) > 0:
                if self._top_up_credit():
                    self.connection.flush()
                self.connection.listen(left_ns / 1e9)
                self._read(limit, times, sizes, raw)
        except UserError as failure:
            self._failure = failure

    @property
    def _readable(self) -> bool:
        queued = lib.pn_link_queued(self._link)
        return queued > 1 or (queued == 1 and not lib.pn_delivery_partial(lib.pn_link_current(self._link)))

    def _check_size(self) -> None:
        delivery = lib.pn_link_current(self._link)
        if delivery and lib.pn_delivery_pending(delivery) > self._largest:
            raise UserError(
                f"{self.connection.endpoint.name} sends a message of more than {self._largest:,} bytes: raise "
                '"Largest message" (max_message_size) if it is meant to be that large'
            )

    def _read(self, limit: int, times: list[int], sizes: list[int], raw: dict[int, bytes]) -> None:
        link, stride, accepted = self._link, self._rows.shape[1], lib.PN_ACCEPTED
        current, recv, update, settle = (
            lib.pn_link_current,
            lib.pn_link_recv,
            lib.pn_delivery_update,
            lib.pn_delivery_settle,
        )
        # Only the last queued delivery can be incomplete.
        behind = range(lib.pn_link_queued(link) - 1, -1, -1)
        for start, left in zip(self._starts[len(times) : limit], behind, strict=False):
            delivery = current(link)
            if not left and lib.pn_delivery_partial(delivery):
                break
            size = recv(link, start, stride)
            times.append(now_ns())
            if size == stride:
                raw[len(sizes)] = message = ffi.buffer(start, stride)[:] + self._remaining_bytes()
                size = len(message)
            elif size < 0:
                raw[len(sizes)], size = b"", 0
            sizes.append(size)
            update(delivery, accepted)
            settle(delivery)

    def _remaining_bytes(self) -> bytes:
        """The bytes of the current message that did not fit into its row."""
        parts, buffer = [], ffi.new("char[]", 65536)
        while (size := lib.pn_link_recv(self._link, buffer, len(buffer))) > 0:
            parts.append(ffi.buffer(buffer, size)[:])
        return b"".join(parts)

    def _top_up_credit(self) -> bool:
        """Give credit for a quarter of the window or more, if so much is missing; returns whether it did."""
        missing = self._window - lib.pn_link_credit(self._link)
        if missing < max(1, self._window // 4):
            return False
        lib.pn_link_flow(self._link, missing)
        return True

    def _check_batch(self, times: list[int], sizes: list[int], raw: dict[int, bytes]) -> Batch:
        """Compare with the templates; messages that match none are returned as bytes."""
        count = len(times)
        lengths = np.array(sizes, np.int64)
        matched = np.zeros(count, np.bool_)
        stamps, numbers = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
        for length in self._matchers.keys() & set(sizes):
            if length >= self._rows.shape[1]:
                continue
            matcher, chosen = self._matchers[length], np.flatnonzero(lengths == length)
            used = slice(0, -(-length // 8))
            words = self._words[:count, used] if len(chosen) == count else self._words[chosen, used]
            rows = words.view(np.uint8)
            found = matcher.stamps(rows)
            same = matcher.same(rows, words) & (found >= 0)
            matched[chosen] = same
            stamps[chosen] = np.where(same, found, -1)
            numbers[chosen] = np.where(same, matcher.numbers(rows), -1)
        for index in np.flatnonzero(~matched).tolist():
            if index not in raw:
                raw[index] = self._rows[index, : sizes[index]].tobytes()
        return Batch(np.array(times, np.int64), stamps, numbers, lengths, matched, raw)


class _TemplateMatcher:
    """Compares messages with a template, apart from stamp and number, and reads these."""

    def __init__(self, template: Template) -> None:
        self._stamp, self._number = template.stamp_offset, template.number_offset
        message = np.frombuffer(template.message, np.uint8)
        fixed = np.ones(len(message), np.bool_)
        for offset in (self._stamp, self._number):
            if offset is not None:
                fixed[offset : offset + 8] = False
        words = len(message) // 8
        whole = fixed[: words * 8].reshape(words, 8).all(axis=1)
        edges = np.flatnonzero(np.diff(whole, prepend=False, append=False)).reshape(-1, 2)
        values = message[: words * 8].view(np.uint64)
        self._fixed = [(slice(a, b), values[a:b]) for a, b in edges.tolist()]
        """Runs of eight bytes at a time that are compared."""
        loose = fixed.copy()
        loose[: words * 8] &= ~whole.repeat(8)
        self._loose = np.flatnonzero(loose)
        """Offsets of the bytes next to stamp and number and at the end, which are compared one by one."""
        self._loose_values = message[self._loose]

    def same(self, rows: NDArray[np.uint8], words: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which rows equal the template apart from stamp and number; `words` are the same rows."""
        equal: NDArray[np.bool_] = (rows[:, self._loose] == self._loose_values).all(axis=1)
        for part, values in self._fixed:
            equal &= (words[:, part] == values).all(axis=1)
        return equal

    def stamps(self, rows: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The stamps, ms since the Unix epoch."""
        return _integers(rows, self._stamp)

    def numbers(self, rows: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The numbers, -1 if the template has none."""
        return np.full(len(rows), -1, np.int64) if self._number is None else _integers(rows, self._number)


def _integers(rows: NDArray[np.uint8], offset: int) -> NDArray[np.int64]:
    fields = np.ascontiguousarray(rows[:, offset : offset + 8])
    return fields.view(">i8").reshape(len(rows)).astype(np.int64)
