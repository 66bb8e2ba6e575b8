"""Pseudonyms of a lab PKI, and small policies, for tests of pools and changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from labconsole_v2x.security.issuing import TICKET_PERMISSIONS, LabPki
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.structures import Curve, Permission, Validity
from labconsole_v2x.stations.pseudonyms import WEEK_S, Pseudonym, PseudonymPolicy, PseudonymPool

NOW_S = 1191 * WEEK_S + 3600
"""ITS time, an hour after the beginning of a week."""
WEEK = Validity(1191 * WEEK_S, 1192 * WEEK_S)
SMALL = PseudonymPolicy(most_valid=3, preload_s=2 * WEEK_S, low_water=2)


@cache
def lab_pki() -> LabPki:
    return LabPki.create(NOW_S - WEEK_S)


def pseudonym(
    validity: Validity = WEEK, *, permissions: Sequence[Permission] = TICKET_PERMISSIONS, curve: Curve = Curve.P256
) -> Pseudonym:
    """A new ticket and its key."""
    key = SoftwareKey.generate(curve)
    duration_s = validity.end_s - validity.start_s
    ticket = lab_pki().ticket(key.public_key, validity.start_s, duration_s=duration_s, permissions=permissions)
    return Pseudonym(ticket, key)


def pool_of(*pseudonyms: Pseudonym, policy: PseudonymPolicy = SMALL, now_s: int = NOW_S) -> PseudonymPool:
    pool = PseudonymPool(policy)
    for one in pseudonyms:
        pool.add(one, now_s)
    return pool


def issue(count: int, validity: Validity) -> list[Pseudonym]:
    """What an AA gives: it grants every request."""
    return [pseudonym(validity) for _ in range(count)]
