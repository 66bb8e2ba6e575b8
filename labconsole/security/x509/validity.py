"""The period of validity of a certificate, CRL or OCSP answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

from labconsole.errors import BadInput

CLOCK_SKEW = timedelta(hours=1)
"""Tolerated difference between clocks: a new certificate is valid since an hour ago."""

LONGEST_DAYS = 36_500
"""A hundred years: more days are a typing error."""

_EARLIEST = datetime(1950, 1, 1, tzinfo=UTC)  # where UTCTime begins (RFC 5280, 4.1.2.5)


@dataclass(frozen=True)
class Validity:
    """A period of validity, both ends included; aware, UTC, whole seconds (RFC 5280, 4.1.2.5).

    Raises:
        BadInput: the end does not come after the beginning, or a certificate cannot hold the time.
    """

    not_before: datetime
    not_after: datetime

    def __post_init__(self) -> None:
        if self.not_before < _EARLIEST:
            raise BadInput("The validity begins before 1950, which a certificate cannot say: choose a later day.")
        if self.not_after <= self.not_before:
            raise BadInput("The validity ends before it begins: choose an end after the beginning.")

    @classmethod
    def for_days(cls, days: int) -> Self:
        """From an hour ago (clocks differ) for `days` days from now.

        Raises:
            BadInput: less than one day, or more than a hundred years.
        """
        if not 1 <= days <= LONGEST_DAYS:
            raise BadInput(f"A validity of {days} days cannot be: choose 1 to {LONGEST_DAYS:,} days.")
        now = datetime.now(UTC).replace(microsecond=0)
        return cls(now - CLOCK_SKEW, now + timedelta(days=days))
