"""What the benchmark measures and records. Light: its roles import it."""

from __future__ import annotations

from enum import IntEnum

from labconsole.model.series import Column, LiveChannel, Series


class Measured(IntEnum):
    """A measurement, as the series `executions` numbers it."""

    RAW_SIGN = 1
    RAW_VERIFY = 2
    SIGN = 3
    VERIFY = 4
    VERIFY_DECODED = 5
    VERIFY_COLD = 6
    PARSE_HASH = 7
    OPENSSL_SIGN = 8
    OPENSSL_VERIFY = 9


class How(IntEnum):
    """On how many cores."""

    ONE = 0
    THREADS = 1
    PROCESSES = 2


OF_PACKETS = tuple(one for one in Measured if one < Measured.OPENSSL_SIGN)
"""The measurements of this console; the others are those of `openssl speed`."""
ON_SEVERAL_CORES = (Measured.SIGN, Measured.VERIFY)
"""What is measured by threads and by processes, too."""

EXECUTIONS = Series(
    "executions",
    "Executions of the measurements: each does an operation many times",
    (
        Column("operation", "u1", "", "1 raw sign, 2 raw verify, 3 sign, 4-6 verify, 7 parse and hash, 8-9 openssl"),
        Column("how", "u1", "", "0 one thread, 1 threads, 2 processes"),
        Column("round", "u2", "", "Round, from 0 on"),
        Column("count", "u4", "", "Operations"),
        Column("started_ns", "i8", "ns", "Beginning", by_clock=True),
        Column("took_ns", "i8", "ns", "Duration of all of them"),
    ),
)
DONE_CHANNEL = LiveChannel("measurements", "Measurements", "measurements")
OPERATIONS_CHANNEL = LiveChannel("operations", "Operations", "ops")
MEASURE_COMMAND = "measure"
OPENSSL_S = 1
"""Time that `openssl speed` takes for each of its two figures, s."""
VERSIONS_EVENT = "versions"
