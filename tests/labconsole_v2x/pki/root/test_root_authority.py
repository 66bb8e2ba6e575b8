"""The root CA certifies accepted EAs and AAs, renews their certificates, and refuses other requests by reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from labconsole.errors import UserError
from labconsole_v2x.pki.authority import Decision
from labconsole_v2x.pki.key_folders import (
    AA,
    certificate_file,
    create_lab,
    current_certificate,
    load_authority,
    load_list_signer,
    next_keys,
    use_next_keys,
)
from labconsole_v2x.pki.request_parts import Content, PublicKeys, encode_data
from labconsole_v2x.pki.root.authority_folder import AuthorityFolder
from labconsole_v2x.pki.root.authority_requests import (
    AuthorityKind,
    CaCertificateRequest,
    attributes_of,
    certified_by_root,
    encode_ca_request,
    rekeying_request,
)
from labconsole_v2x.pki.root.root_authority import RootAuthority
from labconsole_v2x.pki.secured_messages import DeniedRequestError, payload_of, sign_payload
from labconsole_v2x.pki.station_requests import CertifiedKey, check_authority
from labconsole_v2x.security.encoding import YEAR_S
from labconsole_v2x.security.issuing import AA_ISSUES, AUTHORITY_YEARS, ROADSIDE_RANGES, ROOT_YEARS
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.scanning import scan_certificate, scan_signed_data
from labconsole_v2x.security.structures import Certificate, IssuePermission, Validity
from tests.labconsole_v2x.pki.pki_lab import NOW_S, NOW_US, lab_pki
from tests.labconsole_v2x.pki.root.root_lab import AUTHORITY, RootLab

URL = "http://rca.test/"
MORE = IssuePermission(ROADSIDE_RANGES)


@pytest.fixture
def lab(tmp_path: Path) -> RootLab:
    return RootLab(tmp_path)


def test_an_accepted_authority_gets_a_certificate_for_five_years(lab: RootLab) -> None:
    post = lambda url, octets: lab.root.answer(octets)  # noqa: E731
    certificate = certified_by_root(URL, lab.pki.root, AUTHORITY, lab.keys, None, post, NOW_US)
    assert certificate.validity == Validity(NOW_S - 3600, NOW_S - 3600 + AUTHORITY_YEARS * YEAR_S)
    assert (certificate.name, certificate.issuer) == ("AA of a site", lab.pki.root.hashed_id8)
    assert (certificate.permissions, certificate.issue_permissions) == (lab.pki.aa.permissions, AA_ISSUES)
    check_authority("AA", certificate, lab.pki.root, AUTHORITY.task)
    assert lab.decisions == [Decision("CA certificate", "ok", f"certificate {certificate.hashed_id8.hex()}")]


def test_the_current_certificate_signs_for_the_next_and_is_replaced(lab: RootLab) -> None:
    first = lab.certified()
    keys = (SoftwareKey.generate(), SoftwareKey.generate())
    post = lambda url, octets: lab.root.answer(octets)  # noqa: E731
    second = certified_by_root(URL, lab.pki.root, AUTHORITY, keys, first, post, NOW_US)
    assert second.hashed_id8 != first.certificate.hashed_id8
    assert lab.refusal(lab.rekeying(first)) == "unknowncertificate"
    third = scan_certificate(lab.root.answer(lab.rekeying(CertifiedKey(second, keys[0]))))
    assert third.name == "AA of a site"
    # The first key is spent: its holder cannot begin again without the operator.
    assert lab.refusal(lab.request(now_us=NOW_US + 1)) == "deniedrequest"
    # Keys of replaced certificates are spent, too, and those of other authorities are theirs.
    current = CertifiedKey(second, keys[0])
    for key in (lab.keys[0], keys[0]):
        assert lab.refusal(lab.rekeying(current, key=key, now_us=NOW_US + 2)) == "unknowncertificate"


def test_a_lost_answer_is_sent_again_to_the_holder_of_the_key(lab: RootLab) -> None:
    first = lab.certified()
    lab.now_us += 1_000_000
    assert lab.root.answer(lab.request()) == first.certificate.octets
    keys = {"key": SoftwareKey.generate(), "encryption_key": SoftwareKey.generate()}
    second = lab.root.answer(lab.rekeying(first, **keys))
    lab.now_us += 1_000_000
    lab.start()  # and over a restart
    lab.now_us += 1_000_000
    assert lab.root.answer(lab.rekeying(first, **keys)) == second
    lab.revoked.add(scan_certificate(second).hashed_id8)
    lab.now_us += 1_000_000
    assert lab.refusal(lab.rekeying(first, **keys)) == "revoked"


def test_a_certificate_ends_with_the_root_at_the_latest(lab: RootLab) -> None:
    lab.now_us += (ROOT_YEARS - 1) * YEAR_S * 1_000_000
    lab.start()
    certificate = scan_certificate(lab.root.answer(lab.request()))
    end_s, most_s = certificate.validity.end_s, lab.pki.root.validity.end_s
    assert most_s - 3600 < end_s <= most_s


def without_encryption_key(lab: RootLab) -> bytes:
    key = lab.keys[0]
    message = encode_ca_request(CaCertificateRequest(PublicKeys(key.public_key), AUTHORITY.attributes))
    return sign_payload(encode_data(Content.CA_CERTIFICATE_REQUEST, message), key, None, lab.now_us)


def with_foreign_possession(lab: RootLab) -> bytes:
    return sign_payload(payload_of(scan_signed_data(lab.request())), SoftwareKey.generate(), None, lab.now_us)


def with_attributes(**changes: object) -> Callable[[RootLab], bytes]:
    attributes = replace(AUTHORITY.attributes, **changes)  # type: ignore[arg-type]
    return lambda lab: lab.request(attributes=attributes)


REFUSED: dict[str, tuple[str, Callable[[RootLab], bytes]]] = {
    "unknown key": ("unknownkey", lambda lab: lab.request(key=SoftwareKey.generate())),
    "wrong proof of possession": ("invalidsignature", with_foreign_possession),
    "no encryption key": ("invalidkeys", without_encryption_key),
    "old": ("deniedrequest", lambda lab: lab.request(now_us=NOW_US - 301_000_000)),
    "from the future": ("deniedrequest", lambda lab: lab.request(now_us=NOW_US + 6_000_000)),
    "permissions of an EA": ("deniedpermissions", with_attributes(permissions=AuthorityKind.EA.attributes.permissions)),
    "issues more": ("deniedpermissions", with_attributes(issue_permissions=(*AA_ISSUES, MORE))),
    "issues nothing": ("deniedpermissions", with_attributes(issue_permissions=None)),
    "region": ("deniedpermissions", with_attributes(region=frozenset({276}))),
    "validity": ("deniedpermissions", with_attributes(validity=Validity(NOW_S, NOW_S + YEAR_S))),
    "no request": (
        "deniedrequest",
        lambda lab: sign_payload(encode_data(Content.ENROLMENT_REQUEST, b""), lab.keys[0], None, NOW_US),
    ),
    "noise": ("cantparse", lambda lab: b"\x03\x81noise"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_first_requests_are_refused_by_reason(lab: RootLab, name: str) -> None:
    lab.root._started_us -= 3600 * 1_000_000  # the clock's tests are of the request's age
    code, request = REFUSED[name]
    assert lab.refusal(request(lab)) == code
    assert lab.certified().certificate.name == "AA of a site"  # a right one is granted afterwards


def test_a_replayed_request_is_refused(lab: RootLab) -> None:
    request = lab.request()
    lab.root.answer(request)
    assert lab.refusal(request) == "deniedrequest"
    assert "replay" in lab.decisions[-1].reason


def test_requests_for_the_next_certificate_are_refused_by_reason(lab: RootLab) -> None:
    current = lab.certified()
    other = CertifiedKey(current.certificate, SoftwareKey.generate())
    assert lab.refusal(lab.rekeying(other)) == "invalidsignature"
    foreign = lab_pki()
    assert lab.refusal(lab.rekeying(CertifiedKey(foreign.aa, foreign.aa_key))) == "unknowncertificate"
    more = replace(AUTHORITY.attributes, issue_permissions=(MORE,))
    assert lab.refusal(lab.rekeying(current, attributes=more)) == "deniedpermissions"
    lab.revoked.add(current.certificate.hashed_id8)
    assert lab.refusal(lab.rekeying(current)) == "revoked"
    lab.revoked.clear()
    lab.now_us = (current.certificate.validity.end_s + 1) * 1_000_000
    assert lab.refusal(lab.rekeying(current)) == "unknowncertificate"


def test_a_rekeying_names_no_key_of_another_authority(lab: RootLab) -> None:
    current, other = lab.certified(), SoftwareKey.generate()
    lab.accept(other)
    request = lab.request(key=other)  # as others may hear it
    assert lab.refusal(rekeying_request(request, current, lab.now_us)) == "invalidkeys"
    assert scan_certificate(lab.root.answer(request)).name == "AA of a site"


def test_what_others_wrap_around_a_heard_request_fills_no_memory(lab: RootLab) -> None:
    current = lab.certified()
    request = lab.request(now_us=NOW_US + 1)
    answered = 0
    for _ in range(5):
        try:
            lab.root.answer(sign_payload(request, SoftwareKey.generate(), current.certificate, NOW_US + 1))
            answered += 1
        except DeniedRequestError:
            assert "replay" in lab.decisions[-1].reason
    assert (answered, len(lab.root._accepted)) == (1, 2)


def test_who_had_a_revoked_key_gets_no_next_certificate(lab: RootLab) -> None:
    first, key = lab.certified(), SoftwareKey.generate()
    second = scan_certificate(lab.root.answer(lab.rekeying(first, key=key)))
    lab.revoked.add(first.certificate.hashed_id8)
    assert lab.refusal(lab.rekeying(CertifiedKey(second, key))) == "revoked"


def test_a_root_that_ends_within_the_hour_says_so(lab: RootLab) -> None:
    lab.now_us = (lab.pki.root.validity.end_s - 1800) * 1_000_000
    lab.start()
    assert lab.refusal(lab.request()) == "deniedrequest"
    assert "expires within an hour" in lab.decisions[-1].reason


def test_a_replaced_certificate_of_the_lab_is_not_adopted_again(tmp_path: Path, own_home: Path) -> None:
    lab = tmp_path / "lab"
    before, _ = renewed(lab)  # granted, and not yet in use
    register = AuthorityFolder(lab)
    register.adopt_of_lab()
    assert register.certified(before.hashed_id8) is None
    assert sorted(len(one.certificates) for one in register.authorities()) == [1, 2]


def test_a_broken_register_is_named_to_its_operator_only(lab: RootLab) -> None:
    (file,) = lab.folder.glob("root/authorities/*.json")
    file.write_text("{}")
    with pytest.raises(DeniedRequestError, match=r"^internalerror: the root CA cannot use its files"):
        lab.root.answer(lab.request())
    assert str(file) in lab.decisions[-1].reason


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"<html>", "answers no certificate"),
        (None, "is not one under the root"),
    ],
)
def test_an_authority_uses_no_certificate_of_others(lab: RootLab, answer: bytes | None, reason: str) -> None:
    octets = lab_pki().aa.octets if answer is None else answer
    with pytest.raises(UserError, match=reason):
        certified_by_root(URL, lab.pki.root, AUTHORITY, lab.keys, None, lambda *_: octets, NOW_US)
    with pytest.raises(UserError, match="other keys"):
        certified_by_root(URL, lab.pki.root, AUTHORITY, lab.keys, None, lambda *_: lab.pki.aa.octets, NOW_US)


def renewed(folder: Path) -> tuple[Certificate, Certificate]:
    """The current certificate of the AA of a new lab, and one for its next keys, which are stored."""
    create_lab(folder, NOW_S - 3600)
    register = AuthorityFolder(folder)
    register.adopt_of_lab()
    root = RootAuthority(load_list_signer(folder, "root"), register, tuple, clock=lambda: NOW_US)
    current = current_certificate(folder, AA)
    assert current is not None
    post = lambda url, octets: root.answer(octets)  # noqa: E731
    keys = next_keys(folder, AA)
    return current.certificate, certified_by_root(URL, root._root, AUTHORITY, keys, current, post, NOW_US)


@pytest.mark.parametrize("moves", range(5))
def test_an_interrupted_renewal_is_finished_by_the_next_start(
    tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch, moves: int
) -> None:
    lab = tmp_path / "lab"
    before, after = renewed(lab)
    done = 0

    class KilledError(Exception):
        pass

    replace_file = Path.replace

    def replaced(self: Path, target: Path) -> Path:
        nonlocal done
        if done == moves:
            raise KilledError
        done += 1
        return replace_file(self, target)

    monkeypatch.setattr(Path, "replace", replaced)
    if moves < 4:  # the new certificate, two keys, and the certificate in its place
        with pytest.raises(KilledError):
            use_next_keys(lab, AA, after)
    else:
        use_next_keys(lab, AA, after)
    monkeypatch.undo()
    identity = load_authority(lab, AA)
    if not moves:
        assert identity.certificate == before
        return
    assert identity.certificate == after
    assert identity.key.public_key == after.verification_key
    assert identity.encryption_key.public_key == after.encryption_key
    assert scan_certificate(certificate_file(lab, AA).read_bytes()) == after


def test_the_attributes_of_both_kinds_are_those_of_a_labs_authorities() -> None:
    pki = lab_pki()
    for kind, certificate in ((AuthorityKind.EA, pki.ea), (AuthorityKind.AA, pki.aa)):
        assert kind.attributes == attributes_of(certificate)
