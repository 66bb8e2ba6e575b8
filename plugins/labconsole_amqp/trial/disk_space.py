"""The disk space that the samples of a run take: kept in the database, and while the run is in progress."""

from __future__ import annotations

from typing import Final, NamedTuple

from labconsole.model.trial import Series
from labconsole_amqp.choices import Mode, Settlement
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import ACKNOWLEDGED, KEY_USES, RECEIVED, SENT

_KEPT_SHARE: Final = 0.35
"""Of the bytes of all columns, what is left of them packed, with hashes and keys: 0.2 to 0.3 as measured."""
_SPOOL_SHARE: Final = 1.1
"""Of the same, with the headers and digests of blocks."""
_PER_HOUR: Final = 20_000_000
"""Readings of processes and queue in the database."""


class DiskSpace(NamedTuple):
    """Bytes that a run keeps in the database, and that it takes before its spool files are removed at its end."""

    kept: int
    during_run: int


def disk_needed(parameters: AmqpParameters) -> DiskSpace:
    """An upper estimate for a run whose number of messages is set; 0 for others."""
    if not parameters.is_counted:
        return DiskSpace(0, 0)
    series: list[Series] = []
    if parameters.mode is not Mode.RECEIVER:
        series += [SENT] if parameters.settlement is Settlement.PRE_SETTLED else [SENT, ACKNOWLEDGED]
    if parameters.mode is not Mode.SENDER:
        series.append(RECEIVED)
    if parameters.pool_size:
        series.append(KEY_USES)
    row = sum(column.numpy_type.itemsize for one in series for column in one.columns)
    raw = row * parameters.per_sender * parameters.senders
    hours = parameters.per_sender / parameters.rate / 3600 if parameters.is_steady else 0.0
    kept = int(_KEPT_SHARE * raw + _PER_HOUR * hours)
    return DiskSpace(kept, kept + int(_SPOOL_SHARE * raw + _PER_HOUR * hours))
