"""The pool of a station's tickets: what the policy allows, which ticket is taken, and what a refill requests."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from labconsole.errors import UserError
from labconsole_v2x.messages.cam import SpecialVehicle
from labconsole_v2x.messages.denm import Situation
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.structures import CAM_PSID, DENM_PSID, Curve, Permission, Validity
from labconsole_v2x.stations.pseudonyms import (
    WEEK_S,
    Need,
    NoTicketError,
    Permitted,
    Pseudonym,
    PseudonymPolicy,
    PseudonymPool,
    RefusedTicketError,
)
from tests.labconsole_v2x.security.lab_certificates import ACCIDENT, CAR
from tests.labconsole_v2x.stations.pseudonym_lab import NOW_S, SMALL, WEEK, issue, pool_of, pseudonym

RESCUE = CAR._replace(special=SpecialVehicle("rescueContainer", {"lightBarSirenInUse": (b"\x80", 2)}))
RESCUER = (Permission(CAM_PSID, b"\x01\x04\x00"),)
"""The bit of rescueContainer (EN 302 637-2, table 6)."""
DENM_ONLY = (Permission(DENM_PSID, b"\x01\xff\xff\xff"),)


def week(number: int) -> Validity:
    """So many weeks after this one."""
    return Validity(WEEK.start_s + number * WEEK_S, WEEK.end_s + number * WEEK_S)


def test_default_policy_is_that_of_the_eu() -> None:
    policy = PseudonymPolicy()
    assert (policy.lifetime_s, policy.most_valid, policy.preload_s) == (604_800, 100, 13 * 604_800)
    assert {curve.size for curve in policy.curves} == {32}
    assert policy.preload_s <= 92 * 24 * 3600, "what our AA grants"


REFUSED = {
    "lifetime": (Validity(WEEK.start_s, WEEK.end_s + 3600), "longer than 7 days"),
    "expired": (week(-1), "expired"),
    "ahead": (week(3), "later than 14 days"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_ticket_beyond_the_policy_is_refused_with_the_reason(case: str) -> None:
    validity, reason = REFUSED[case]
    pool = pool_of()
    with pytest.raises(RefusedTicketError, match=reason):
        pool.add(pseudonym(validity), NOW_S)
    assert len(pool) == 0


def test_ticket_on_another_curve_of_another_key_or_twice_is_refused() -> None:
    one = pseudonym()
    pool = pool_of(one)
    with pytest.raises(RefusedTicketError, match="in the pool already"):
        pool.add(one, NOW_S)
    with pytest.raises(RefusedTicketError, match="not that of the ticket"):
        pool.add(Pseudonym(pseudonym().ticket, SoftwareKey.generate()), NOW_S)
    with pytest.raises(RefusedTicketError, match="NIST P-384"):
        pool.add(pseudonym(curve=Curve.P384), NOW_S)
    pool_of(pseudonym(curve=Curve.BRAINPOOL_P256R1), pseudonym(curve=Curve.P256))
    pool_of(pseudonym(curve=Curve.P384), policy=replace(SMALL, curves=frozenset(Curve)))


def test_no_more_tickets_than_the_policy_allows_are_valid_at_the_same_time() -> None:
    pool = pool_of(*issue(2, WEEK), *issue(3, week(1)))
    half = Validity(WEEK.start_s + WEEK_S // 2, WEEK.end_s + WEEK_S // 2)
    with pytest.raises(RefusedTicketError, match="3 tickets are valid"):
        pool.add(pseudonym(half), NOW_S)  # it overlaps two of this week, then three of the next
    pool.add(pseudonym(Validity(half.start_s, WEEK.end_s)), NOW_S)
    with pytest.raises(RefusedTicketError, match="3 tickets are valid"):
        pool.add(pseudonym(), NOW_S)


def test_each_fresh_ticket_is_taken_once_before_used_ones_come_again() -> None:
    pool = pool_of(*issue(3, WEEK))
    taken = [pool.change(NOW_S) for _ in range(7)]
    assert len({one.ticket.hashed_id8 for one in taken[:3]}) == 3
    assert taken[3:6] == taken[:3] and taken[6] == taken[0], "the one whose use was longest ago"
    assert pool.current is taken[6]


def test_ticket_that_comes_later_is_taken_before_a_used_one() -> None:
    pool = pool_of(*issue(2, WEEK))
    used = [pool.change(NOW_S) for _ in range(2)]
    late = pseudonym()
    pool.add(late, NOW_S)
    assert (pool.change(NOW_S), pool.change(NOW_S)) == (late, used[0])


def test_order_of_fresh_tickets_is_random() -> None:
    tickets = issue(3, WEEK)
    firsts = {pool_of(*tickets).change(NOW_S).ticket.hashed_id8 for _ in range(60)}
    assert len(firsts) == 3


def test_only_valid_tickets_are_taken_and_expired_ones_dropped() -> None:
    now, later = pseudonym(), pseudonym(week(1))
    pool = pool_of(now, later)
    assert (pool.valid(NOW_S), pool.change(NOW_S)) == ([now], now)
    with pytest.raises(NoTicketError, match="ITS-AID 36"):
        pool.change(NOW_S)
    assert pool.current is now, "it stays in use"
    assert pool.change(WEEK.end_s) is later
    assert (len(pool), pool.valid(WEEK.end_s)) == (1, [later])


def test_pool_knows_whether_the_current_ticket_permits_a_message_or_another_one_or_none() -> None:
    """F-SIG-04, -05 and -06."""
    plain, rescuer = pseudonym(), pseudonym(permissions=RESCUER)
    pool = pool_of(plain, rescuer)
    need = Need.of(RESCUE)
    assert pool.permitted(Need.of(CAR), NOW_S) is Permitted.ANOTHER, "none is in use yet"
    pool.change(NOW_S, Need(DENM_PSID))
    assert pool.permitted(Need.of(CAR), NOW_S) is Permitted.CURRENT
    assert pool.permitted(Need.of(ACCIDENT), NOW_S) is Permitted.CURRENT
    assert pool.permitted(need, NOW_S) is Permitted.ANOTHER
    assert pool.change(NOW_S, need) is rescuer
    assert pool.permitted(need, NOW_S) is Permitted.CURRENT
    assert pool.permitted(Need.of(ACCIDENT), NOW_S) is Permitted.ANOTHER
    assert pool.permitted(Need(137), NOW_S) is Permitted.NONE
    assert pool.permitted(Need.of(replace(ACCIDENT, situation=Situation(77))), NOW_S) is Permitted.NONE
    assert pool.permitted(need, WEEK.end_s) is Permitted.NONE, "expired"


def test_ticket_without_ssp_or_of_an_unknown_version_permits_only_what_needs_no_bit() -> None:
    assert pseudonym(permissions=(Permission(CAM_PSID),)).permits(Need.of(CAR))
    assert not pseudonym(permissions=(Permission(CAM_PSID),)).permits(Need.of(RESCUE))
    assert not pseudonym(permissions=(Permission(CAM_PSID, b"\x09\xff\xff"),)).permits(Need.of(RESCUE))


def test_change_takes_no_ticket_that_does_not_permit_what_the_station_sends() -> None:
    pool = pool_of(pseudonym(), pseudonym(permissions=DENM_ONLY))
    pool.change(NOW_S)
    with pytest.raises(NoTicketError):
        pool.change(NOW_S)


def test_refill_fills_each_week_of_the_preload_time() -> None:
    pool = pool_of(pseudonym(), pseudonym(week(2)))
    present = Validity(NOW_S, WEEK.end_s)
    assert pool.shortages(NOW_S) == [(present, 2), (week(1), 3), (week(2), 2)]
    assert pool.shortages(NOW_S + 59)[0] == (present, 2), "from a whole minute on"
    assert (pool.missing(NOW_S), pool.is_low(NOW_S)) == (7, True)
    assert pool.refill(issue, NOW_S) == 7
    assert (pool.missing(NOW_S), pool.is_low(NOW_S), len(pool)) == (0, False, 9)
    assert [len(pool.valid(NOW_S + number * WEEK_S)) for number in range(3)] == [3, 3, 3]
    assert pool.missing(NOW_S + 3 * WEEK_S) == 9, "all have expired"


def test_pool_is_full_with_tickets_of_the_whole_preload_time() -> None:
    pool = PseudonymPool()
    assert [count for _, count in pool.shortages(NOW_S)] == [100] * 14, "the present week and thirteen"
    assert pool.missing(NOW_S) == pool.missing(WEEK.end_s - 1) == 1400


def test_low_water_mark_counts_fresh_tickets_that_are_valid_now() -> None:
    pool = pool_of(*issue(3, WEEK), *issue(3, week(1)))
    assert (pool.fresh(NOW_S), pool.is_low(NOW_S)) == (3, False)
    pool.change(NOW_S)
    assert (pool.fresh(NOW_S), pool.is_low(NOW_S)) == (2, False)
    pool.change(NOW_S)
    assert (pool.fresh(NOW_S), pool.is_low(NOW_S)) == (1, True)


def test_refill_that_fails_keeps_the_tickets_before_it() -> None:
    pool, asked = pool_of(), []

    def authorize(count: int, validity: Validity) -> list[Pseudonym]:
        if asked:
            raise UserError("the AA does not answer")
        asked.append(validity)
        return issue(count, validity)

    with pytest.raises(UserError, match="does not answer"):
        pool.refill(authorize, NOW_S)
    assert (len(pool), asked) == (3, [Validity(NOW_S, WEEK.end_s)])


def test_refill_refuses_what_an_authority_gives_beyond_the_policy() -> None:
    with pytest.raises(RefusedTicketError, match="longer than 7 days"):
        pool_of().refill(lambda count, validity: issue(1, Validity(WEEK.start_s, WEEK.end_s + 3600)), NOW_S)


@pytest.mark.usefixtures("switching_often")
def test_threads_refill_and_change_at_the_same_time() -> None:
    policy = replace(SMALL, most_valid=40, preload_s=0)
    tickets = issue(40, WEEK)
    pool = pool_of(*tickets[:2], policy=policy)

    def change() -> None:
        for _ in range(300):
            pool.change(NOW_S)

    def fill() -> None:
        for one in tickets[2:]:
            pool.add(one, NOW_S)

    with ThreadPoolExecutor(3) as threads:
        for done in [threads.submit(change), threads.submit(change), threads.submit(fill)]:
            done.result()
    assert len(pool) == 40
