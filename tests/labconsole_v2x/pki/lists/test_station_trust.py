"""A station's trust follows right lists, and every wrong one is refused by its reason and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from labconsole.errors import UserError
from labconsole_v2x.pki.lists.signed_lists import ListReason, RefusedListError, sign_revocation_list, sign_trust_list
from labconsole_v2x.pki.lists.station_trust import StationTrust
from labconsole_v2x.pki.lists.trust_lists import (
    AaEntry,
    CentreEntry,
    Command,
    DeletedCentre,
    DeletedCertificate,
    EaEntry,
    RevocationList,
    RootEntry,
    TrustList,
    encode_trust_list,
)
from labconsole_v2x.pki.request_parts import Content, encode_data
from labconsole_v2x.security.encoding import encode_to_be_signed_data
from labconsole_v2x.security.issuing import CRL_PSID, CTL_PSID, LabPki, issue
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.signing import sign_to_be_signed_data
from labconsole_v2x.security.structures import Curve, Header, Permission
from labconsole_v2x.security.trust import TrustStore
from labconsole_v2x.security.verification import Reason
from tests.labconsole_v2x.pki.lists.lists_lab import (
    DC_URL,
    MINUTE_US,
    WEEK_S,
    ListsLab,
    ticket_of,
    trusted,
    verdict,
)
from tests.labconsole_v2x.pki.pki_lab import AA_URL, EA_URL, NOW_S, NOW_US, lab_pki
from tests.labconsole_v2x.security.lab_certificates import spoiled


def refused(
    lab: ListsLab, apply: Callable[[bytes], object], octets: bytes, reason: ListReason, match: str = "."
) -> None:
    """The list is refused, and nothing changes."""
    before = trusted(lab)
    with pytest.raises(RefusedListError, match=match) as failure:
        apply(octets)
    assert failure.value.reason is reason
    assert trusted(lab) == before


def test_lists_lead_from_the_tlm_to_tickets_that_are_accepted() -> None:
    lab = ListsLab()
    ticket, pki = ticket_of(lab.pki), lab.pki
    assert verdict(lab, ticket) is Reason.UNKNOWN_ISSUER
    lab.trust.apply_trust_list(lab.ectl())
    assert lab.trust.roots == (pki.root,) and verdict(lab, ticket) is Reason.UNKNOWN_ISSUER
    lab.trust.apply_trust_list(lab.ctl())
    assert verdict(lab, ticket) is Reason.ACCEPTED
    root = pki.root.hashed_id8
    assert [entry.url for entry in lab.trust.enrolment_authorities(root)] == [EA_URL]
    assert [entry.url for entry in lab.trust.authorization_authorities(root)] == [AA_URL]
    assert {centre.url for centre in lab.trust.centres} == {DC_URL}


@pytest.mark.parametrize("curve", list(Curve))
def test_lists_are_signed_on_every_curve(curve: Curve) -> None:
    lab = ListsLab(LabPki.create(NOW_S - 3600, root_curve=curve))
    lab.apply_all()
    assert verdict(lab, ticket_of(lab.pki)) is Reason.ACCEPTED


def test_a_station_without_a_tlm_trusts_the_roots_that_it_is_given() -> None:
    lab = ListsLab()
    lab.trust = StationTrust(lab.store, roots=[lab.pki.root], clock=lambda: lab.now_us)
    refused(lab, lab.trust.apply_trust_list, lab.ectl(), ListReason.WRONG_SIGNER, "is not trusted")
    lab.trust.apply_trust_list(lab.ctl())
    assert verdict(lab, ticket_of(lab.pki)) is Reason.ACCEPTED


def test_only_a_tlm_and_only_a_root_are_trusted_as_such() -> None:
    pki = lab_pki()
    key = SoftwareKey.generate()
    powerless = issue(key, key.public_key, pki.tlm.validity, permissions=(Permission(CTL_PSID, b"\x01\x38"),))
    for wrong in (pki.root, pki.aa, powerless):
        with pytest.raises(UserError, match="cannot be a TLM"):
            StationTrust(TrustStore(), tlm=wrong)
    with pytest.raises(UserError, match="cannot be a trusted root"):
        StationTrust(TrustStore(), roots=[pki.tlm])


def test_packets_under_a_revoked_aa_are_rejected_with_a_reason_of_their_own() -> None:
    lab = ListsLab()
    lab.apply_all()
    known, unseen = ticket_of(lab.pki), ticket_of(lab.pki)
    assert verdict(lab, known) is Reason.ACCEPTED
    lab.now_us += MINUTE_US
    lab.trust.apply_revocation_list(lab.crl(lab.pki.aa.hashed_id8, this_update_s=NOW_S + 60))
    for digest in (True, False):
        assert verdict(lab, known, digest=digest) is Reason.REVOKED
    assert verdict(lab, unseen) is Reason.REVOKED
    assert verdict(lab, unseen, digest=True) is Reason.REVOKED
    assert lab.store.add(lab.pki.aa) is not None and lab.store.issuer(lab.pki.aa.hashed_id8) is None
    assert lab.trust.authorization_authorities(lab.pki.root.hashed_id8) == ()
    # A later CRL without it: the authority is trusted again, as its root says.
    lab.now_us += MINUTE_US
    lab.trust.apply_revocation_list(lab.crl(this_update_s=NOW_S + 120))
    assert verdict(lab, unseen) is Reason.ACCEPTED


def test_a_deleted_aa_is_distrusted_until_it_is_listed_again() -> None:
    lab = ListsLab()
    lab.apply_all()
    ticket = ticket_of(lab.pki)
    assert verdict(lab, ticket) is Reason.ACCEPTED
    lab.now_us += MINUTE_US
    gone = (DeletedCertificate(lab.pki.aa.hashed_id8), DeletedCentre(DC_URL))
    lab.trust.apply_trust_list(lab.ctl(gone, sequence=2, is_full=False, issued_us=lab.now_us))
    assert verdict(lab, ticket) is Reason.REVOKED
    root = lab.pki.root.hashed_id8
    assert lab.trust.authorization_authorities(root) == () and len(lab.trust.enrolment_authorities(root)) == 1
    assert [centre.url for centre in lab.trust.centres] == [DC_URL]  # that of the ECTL
    lab.now_us += MINUTE_US
    back = (AaEntry(lab.pki.aa, "http://new/"),)
    lab.trust.apply_trust_list(lab.ctl(back, sequence=3, is_full=False, issued_us=lab.now_us))
    assert verdict(lab, ticket) is Reason.ACCEPTED
    assert [entry.url for entry in lab.trust.authorization_authorities(root)] == ["http://new/"]


def test_a_root_that_the_tlm_deletes_is_distrusted_with_all_below_it() -> None:
    lab = ListsLab()
    lab.apply_all()
    ticket = ticket_of(lab.pki)
    assert verdict(lab, ticket) is Reason.ACCEPTED
    lab.now_us += MINUTE_US
    lab.trust.apply_trust_list(lab.ectl((), sequence=2, issued_us=lab.now_us))
    assert lab.trust.roots == () and len(lab.store) == 0
    assert verdict(lab, ticket) is Reason.REVOKED
    refused(lab, lab.trust.apply_trust_list, lab.ctl(sequence=2, issued_us=lab.now_us), ListReason.WRONG_SIGNER)
    lab.now_us += MINUTE_US
    lab.trust.apply_trust_list(lab.ectl(sequence=3, issued_us=lab.now_us))
    assert verdict(lab, ticket) is Reason.ACCEPTED  # its CTL is still the one applied
    lab.trust.apply_trust_list(lab.ctl(sequence=2, issued_us=lab.now_us))


def test_a_root_that_is_listed_again_has_still_revoked_what_it_had() -> None:
    lab = ListsLab()
    lab.apply_all()
    lab.now_us += MINUTE_US
    lab.trust.apply_revocation_list(lab.crl(lab.pki.aa.hashed_id8, this_update_s=NOW_S + 60))
    for sequence, entries in ((2, ()), (3, lab.ectl_entries)):
        lab.trust.apply_trust_list(lab.ectl(entries, sequence=sequence, issued_us=lab.now_us))
    assert lab.trust.roots == (lab.pki.root,) and verdict(lab, ticket_of(lab.pki)) is Reason.REVOKED
    refused(lab, lab.trust.apply_revocation_list, lab.crl(), ListReason.OLDER)


def test_a_root_does_not_name_the_distribution_centre_of_another() -> None:
    lab, other = ListsLab(), lab_pki()
    signer = other.root.hashed_id8
    lab.trust.apply_trust_list(lab.ectl((RootEntry(lab.pki.root), RootEntry(other.root))))
    lab.trust.apply_trust_list(lab.ctl((CentreEntry("http://elsewhere/", (signer, lab.pki.root.hashed_id8)),)))
    assert lab.trust.centre_of(signer) is None
    own = lab.trust.centre_of(lab.pki.root.hashed_id8)
    assert own is not None and own.url == "http://elsewhere/"


def test_a_root_revokes_nothing_of_another_root() -> None:
    lab, other = ListsLab(), lab_pki()
    entries = (RootEntry(lab.pki.root), RootEntry(other.root))
    lab.trust.apply_trust_list(lab.ectl(entries))
    lab.trust.apply_trust_list(lab.ctl())
    lab.store.add(other.aa)
    foreign, own = ticket_of(other), ticket_of(lab.pki)
    lab.trust.apply_revocation_list(lab.crl(other.aa.hashed_id8, other.root.hashed_id8, lab.pki.aa.hashed_id8))
    assert (verdict(lab, foreign), verdict(lab, own)) == (Reason.ACCEPTED, Reason.REVOKED)
    assert other.root in lab.trust.roots


def test_a_root_that_revokes_itself_signs_no_more_lists() -> None:
    lab = ListsLab()
    lab.apply_all()
    lab.now_us += MINUTE_US
    lab.trust.apply_revocation_list(lab.crl(lab.pki.root.hashed_id8, this_update_s=NOW_S + 60))
    assert lab.trust.roots == () and len(lab.store) == 0
    refused(lab, lab.trust.apply_revocation_list, lab.crl(this_update_s=NOW_S + 60), ListReason.WRONG_SIGNER)


def changed_tlm(lab: ListsLab) -> bytes:
    other = lab_pki()
    values = TrustList(True, 2, NOW_S + 60, (RootEntry(other.root),))
    return sign_trust_list(values, Content.TLM_TRUST_LIST, other.tlm_key, other.tlm, NOW_US)


def with_header(lab: ListsLab, header: Header) -> bytes:
    payload = encode_data(Content.ROOT_TRUST_LIST, encode_trust_list(TrustList(True, 2, NOW_S + 60, ())))
    return sign_to_be_signed_data(encode_to_be_signed_data(payload, header), lab.pki.root_key, lab.pki.root)


def by_root(lab: ListsLab, *commands: Command) -> bytes:
    return lab.ctl(commands, sequence=2, issued_us=NOW_US + 1)


def delta(lab: ListsLab, sequence: int) -> bytes:
    return lab.ctl((), sequence=sequence, is_full=False, issued_us=NOW_US + 1)


def powerless_root(lab: ListsLab) -> bytes:
    """A list by the root's key under a certificate with the same name, which may list nothing."""
    key, root = SoftwareKey.generate(), lab.pki.root
    permissions = (Permission(CTL_PSID, b"\x01\x30"),)
    issues = root.issue_permissions
    other = issue(key, key.public_key, root.validity, permissions=permissions, issue_permissions=issues)
    lab.now_us += 2
    lab.trust.apply_trust_list(lab.ectl((RootEntry(root), RootEntry(other)), sequence=2, issued_us=NOW_US + 1))
    centre = TrustList(True, 1, NOW_S + 60, (CentreEntry(DC_URL, ()),))
    return sign_trust_list(centre, Content.ROOT_TRUST_LIST, key, other, NOW_US + 2)


WRONG_LISTS: list[tuple[ListReason, str, Callable[[ListsLab], bytes]]] = [
    (ListReason.MALFORMED, "truncated", lambda lab: b""),
    (ListReason.MALFORMED, "Truncated, at octet", lambda lab: lab.ctl()[:-1]),
    (ListReason.MALFORMED, "further header", lambda lab: with_header(lab, Header(CRL_PSID, NOW_US))),
    (ListReason.MALFORMED, "no generation time", lambda lab: with_header(lab, Header(CTL_PSID))),
    (ListReason.MALFORMED, "further header", lambda lab: with_header(lab, Header(CTL_PSID, NOW_US, NOW_US))),
    (ListReason.SIGNATURE_INVALID, "is not that", lambda lab: spoiled(lab.ctl(sequence=2))),
    (ListReason.WRONG_SIGNER, "not trusted", changed_tlm),
    (ListReason.WRONG_SIGNER, "not trusted", lambda lab: ListsLab().ctl(sequence=2)),
    (ListReason.PERMISSION_MISSING, "CentreEntry without", powerless_root),
    (ListReason.EXPIRED, "next update", lambda lab: lab.ctl(sequence=2, next_update_s=NOW_S)),
    (ListReason.IN_FUTURE, "clock", lambda lab: lab.ctl(sequence=2, issued_us=NOW_US + MINUTE_US)),
    (ListReason.OLDER, "generated before", lambda lab: lab.ctl(sequence=2, issued_us=NOW_US - 1)),
    (ListReason.OLDER, "sequence is 0, 1 is", lambda lab: lab.ctl(sequence=0, issued_us=NOW_US + 1)),
    (ListReason.OLDER, "sequence is 129, 1 is", lambda lab: lab.ctl(sequence=129, issued_us=NOW_US + 1)),
    (
        ListReason.WRONG_BASE,
        "changes 2, 1 is",
        lambda lab: lab.ctl((), sequence=3, is_full=False, issued_us=NOW_US + 1),
    ),
    (ListReason.WRONG_BASE, "changes 0, 1 is", lambda lab: lab.ctl((), is_full=False, issued_us=NOW_US + 1)),
    (ListReason.OLDER, "sequence is 0", lambda lab: lab.ctl((), sequence=0, is_full=False, issued_us=NOW_US + 1)),
    (ListReason.ENTRY_INVALID, "issuer does not fit", lambda lab: by_root(lab, AaEntry(lab_pki().aa, AA_URL))),
    (ListReason.ENTRY_INVALID, "issuer does not fit", lambda lab: by_root(lab, EaEntry(lab_pki().ea, EA_URL))),
    (
        ListReason.ENTRY_INVALID,
        "may not issue",
        lambda lab: lab.ectl((RootEntry(lab.pki.tlm),), sequence=2, issued_us=NOW_US + 1),
    ),
]


@pytest.mark.parametrize(("reason", "match", "wrong"), WRONG_LISTS)
def test_wrong_trust_lists_are_refused_by_reason(
    reason: ListReason, match: str, wrong: Callable[[ListsLab], bytes]
) -> None:
    lab = ListsLab()
    lab.apply_all()
    octets = wrong(lab)
    refused(lab, lab.trust.apply_trust_list, octets, reason, match)


def test_wrong_revocation_lists_are_refused_by_reason() -> None:
    lab = ListsLab()
    lab.apply_all()
    pki, aa = lab.pki, lab.pki.aa.hashed_id8
    by_aa = sign_revocation_list(RevocationList(NOW_S, NOW_S + 60, (aa,)), pki.aa_key, pki.aa, NOW_US)
    by_tlm = sign_revocation_list(RevocationList(NOW_S, NOW_S + 60, (aa,)), pki.tlm_key, pki.tlm, NOW_US)
    for octets, reason in (
        (by_aa, ListReason.WRONG_SIGNER),
        (by_tlm, ListReason.WRONG_SIGNER),
        (spoiled(lab.crl(aa)), ListReason.SIGNATURE_INVALID),
        (lab.crl(aa, this_update_s=NOW_S - 1, issued_us=NOW_US + 1), ListReason.OLDER),
        (lab.crl(aa, issued_us=NOW_US - 1), ListReason.OLDER),
        (lab.crl(aa, next_update_s=NOW_S), ListReason.EXPIRED),
        (lab.crl(aa, this_update_s=NOW_S + 60), ListReason.IN_FUTURE),
        (lab.ctl(), ListReason.MALFORMED),
    ):
        refused(lab, lab.trust.apply_revocation_list, octets, reason)
    refused(lab, lab.trust.apply_trust_list, lab.crl(aa), ListReason.MALFORMED, "revocation list")


def test_a_root_without_permission_for_revocation_lists_is_refused() -> None:
    lab = ListsLab()
    key, root = SoftwareKey.generate(), lab.pki.root
    permissions = tuple(one for one in root.permissions if one.psid != CRL_PSID)
    other = issue(key, key.public_key, root.validity, permissions=permissions, issue_permissions=root.issue_permissions)
    trust = StationTrust(lab.store, roots=[other], clock=lambda: NOW_US)
    with pytest.raises(RefusedListError) as failure:
        trust.apply_revocation_list(sign_revocation_list(RevocationList(NOW_S, NOW_S + 60, ()), key, other, NOW_US))
    assert failure.value.reason is ListReason.PERMISSION_MISSING


def test_the_list_that_is_applied_may_come_again_and_sequences_wrap() -> None:
    lab = ListsLab()
    lab.trust.apply_trust_list(lab.ectl())
    octets = lab.ctl(sequence=255)
    lab.trust.apply_trust_list(octets)
    lab.trust.apply_trust_list(octets)
    for sequence in (0, 1):
        lab.now_us += MINUTE_US
        lab.trust.apply_trust_list(lab.ctl((), sequence=sequence, is_full=False, issued_us=lab.now_us))
    assert lab.trust.sequence(lab.pki.root.hashed_id8) == 1
    crl = lab.crl()
    lab.trust.apply_revocation_list(crl)
    lab.trust.apply_revocation_list(crl)


def test_once_a_list_has_expired_any_later_full_list_follows_it() -> None:
    lab = ListsLab()
    lab.apply_all()
    lab.now_us += 2 * WEEK_S * 1_000_000
    later = {"issued_us": lab.now_us, "next_update_s": lab.now_us // 1_000_000 + 60}
    lab.trust.apply_trust_list(lab.ectl(sequence=200, **later))
    lab.trust.apply_trust_list(lab.ctl(sequence=200, **later))
    assert lab.trust.sequence(lab.pki.root.hashed_id8) == 200


def test_what_is_restored_keeps_older_lists_out() -> None:
    lab, again = ListsLab(), ListsLab()
    again.pki = lab.pki
    again.trust = StationTrust(again.store, tlm=lab.pki.tlm, clock=lambda: again.now_us)
    again.now_us = NOW_US + 3 * WEEK_S * 1_000_000
    for octets in (lab.ectl(sequence=7), lab.ctl(sequence=7), lab.crl(lab.pki.aa.hashed_id8)):
        again.trust.restore(octets)
    again.now_us = NOW_US
    refused(again, again.trust.apply_trust_list, again.ctl(sequence=6), ListReason.OLDER)
    assert verdict(again, ticket_of(lab.pki)) is Reason.REVOKED


def test_a_signer_whose_certificate_has_expired_is_refused() -> None:
    pki = lab_pki()
    lab = ListsLab(replace(pki, root=pki.root))
    lab.now_us = (pki.tlm.validity.end_s + 1) * 1_000_000
    octets = lab.ectl(issued_us=lab.now_us, next_update_s=lab.now_us // 1_000_000 + 60)
    refused(lab, lab.trust.apply_trust_list, octets, ListReason.WRONG_SIGNER, "not valid now")
