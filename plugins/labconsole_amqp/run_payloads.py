"""The payloads of a run's messages: one, or several in an order that sender and receiver know."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.wire.envelope import Protection
from labconsole_amqp.wire.message_sizes import DrawnOrder
from labconsole_amqp.wire.payload import Payload, load_payload, payload_path


class RunPayloads:
    """The payloads of a run, `bodies`, each of another size, and what they are made of, `sources`."""

    def __init__(
        self, sources: Sequence[Payload], bodies: Sequence[bytes], order: DrawnOrder, *, numbered: bool
    ) -> None:
        """`numbered`: whether a receiver knows the number of each message."""
        self.sources, self.bodies = tuple(sources), tuple(bodies)
        self._order, self._numbered = order, numbered
        self._of_size = {len(body): body for body in bodies}

    @property
    def largest(self) -> bytes:
        """The largest payload."""
        return max(self.bodies, key=len)

    @property
    def one(self) -> bool:
        """Whether all messages have the same payload."""
        return len(self.bodies) == 1

    def of_message(self, number: int) -> bytes:
        """The payload of the message with this number (`message_number`)."""
        return self.bodies[self._order.place(number)]

    def places(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each message number the place of its payload in `bodies`."""
        return self._order.places(numbers)

    def expects(self, payload: bytes, number: int | None) -> bool:
        """Whether this is the payload of the message with a number, or of any where a receiver knows none."""
        if number is None or not self._numbered:
            return self._of_size.get(len(payload)) == payload
        return payload == self.of_message(number)


def load_payloads(parameters: AmqpParameters, copy: Path | None = None) -> RunPayloads:
    """Load the payloads of a run, the operator's file from its `copy` if a run has one. Raises UserError."""
    as_string = parameters.protection is not Protection.SIGNED_ENCRYPTED
    sources = [load_payload(name, as_string=as_string, copy=copy) for name in parameters.payload_names]
    bodies = [source.data for source in sources]
    if sizes := parameters.drawn_sizes:
        bodies = [resized(sources[0].data, size, as_string=as_string) for size in sizes]
    order = DrawnOrder(parameters.payload_shares, parameters.size_seed)
    return RunPayloads(sources, bodies, order, numbered=parameters.numbered)


def resized(data: bytes, size: int, *, as_string: bool) -> bytes:
    """The data repeated or cut to a size; of text, spaces take the place of a character that would be cut."""
    body = (data * (size // len(data) + 1))[:size]
    return body.decode(errors="ignore").encode().ljust(size) if as_string else body


def size_shares(parameters: AmqpParameters) -> dict[int, float] | None:
    """The sizes of a run's payloads and their shares, which add up to 1; None if a payload is missing."""
    files = [_file_size(name) for name in parameters.payload_names]
    if None in files:
        return None
    sizes, shares = parameters.drawn_sizes or files, parameters.payload_shares
    return {size: share / sum(shares) for size, share in zip(sizes, shares, strict=True) if size is not None}


def _file_size(choice: str) -> int | None:
    path = payload_path(choice)
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:  # a name that is too long: the form reports it
        return None
