"""What a device benchmark records: one row for each operation, with its beginning and its end."""

from __future__ import annotations

from enum import IntEnum

from labconsole.model.trial import Column, LiveChannel, Series


class RSAOperation(IntEnum):
    """An operation of Appendix C, as the series `operations` numbers it."""

    SIGN = 1
    VERIFY = 2
    HASH_AND_SIGN = 3
    KEY_GENERATION = 4
    ENCRYPT = 5
    DECRYPT = 6

    @property
    def title(self) -> str:
        """As a person reads it: "Hash and sign"."""
        return self.name.replace("_", " ").capitalize()


OPERATIONS = Series(
    "operations",
    "Operations that were timed, one row each",
    (
        Column("operation", "u1", "", "1 sign, 2 verify, 3 hash and sign, 4 key generation, 5 encrypt, 6 decrypt"),
        Column("bits", "u2", "bit", "Size of the RSA key"),
        Column("thread", "u2", "", "Number of the thread, from 1"),
        Column("started", "i8", "ns", "Began"),
        Column("finished", "i8", "ns", "Ended"),
    ),
)

DONE_CHANNEL = LiveChannel("measured", "Measured", "measurements")
"""An operation with keys of one size: counted when its time is over."""
OPERATIONS_CHANNEL = LiveChannel("operations", "Operations", "ops")
TIME_CHANNEL = LiveChannel("operation", "One operation", "ns")
