"""ITS time (TAI since 2004-01-01T00:00:00 UTC) and Unix time, and the shortened times of messages."""

from __future__ import annotations

LEAP_SECONDS_SINCE_2004 = 5
"""TAI - UTC grew by this many seconds since 2004: five leap seconds up to 2017, none since. ITS time = UTC + 5 s."""

UNIX_TIME_OF_2004_S = 1_072_915_200
"""2004-01-01T00:00:00 UTC as Unix time."""

GN_TIMESTAMP_MODULUS_MS = 1 << 32
"""A GeoNetworking timestamp starts again from 0 after 49.7 days (EN 302 636-4-1, 9.5.2.2)."""

GENERATION_DELTA_TIME_MODULUS_MS = 1 << 16
"""A CAM's generationDeltaTime starts again from 0 after 65.5 s (EN 302 637-2, B.3)."""

_OFFSET_US = (LEAP_SECONDS_SINCE_2004 - UNIX_TIME_OF_2004_S) * 1_000_000


def its_us(unix_ns: int) -> int:
    """Return the ITS time in us of a Unix time in ns; exact for times since 2017-01-01."""
    return unix_ns // 1000 + _OFFSET_US


def unix_ns(its_us: int) -> int:
    """Return the Unix time in ns of an ITS time in us; exact for times since 2017-01-01."""
    return (its_us - _OFFSET_US) * 1000


def gn_timestamp(its_us: int) -> int:
    """Return the timestamp of a GeoNetworking position vector: ms modulo 2^32."""
    return its_us // 1000 % GN_TIMESTAMP_MODULUS_MS


def generation_delta_time(its_us: int) -> int:
    """Return the generationDeltaTime of a CAM: ms modulo 65,536."""
    return its_us // 1000 % GENERATION_DELTA_TIME_MODULUS_MS


def full_time(delta: int, modulus_ms: int, near_us: int) -> int:
    """Return the ITS time in us with remainder `delta` that is nearest to `near_us`; the later of two."""
    modulus_us = modulus_ms * 1000
    ahead = (delta * 1000 - near_us) % modulus_us
    return near_us + (ahead if ahead <= modulus_us // 2 else ahead - modulus_us)
