"""Trust bundles: the first is confirmed by its fingerprint, later ones are signed by trusted keys, none goes back."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from labconsole.errors import BadInput, UserError
from labconsole.security.pki.records import Origin, TrustKind
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509 import cms
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked, issue_crl
from labconsole.security.x509.fingerprints import fingerprint, grouped
from labconsole.security.x509.issuing import Issuer, issue, issue_root, link_certificates
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.names import name_from_text
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.certificate_import import import_certificates
from labconsole_certificates.operations.export_formats import as_pem
from labconsole_certificates.revocation.crl_operations import import_crl
from labconsole_certificates.trust.bundle_format import BundleContent, encode
from labconsole_certificates.trust.bundle_import import import_bundle
from labconsole_certificates.trust.bundle_inspection import inspect_bundle, must_be_confirmed
from tests.labconsole_certificates.trust.conftest import Console, NewConsole

_NOW = datetime.now(UTC).replace(microsecond=0)


def _root(name: str = "Beta", validity: Validity | None = None) -> Issuer:
    key = generate(KeyType.P_256)
    subject = name_from_text(f"CN={name} Root,O={name}")
    return Issuer(issue_root(key, subject, validity or Validity.for_days(1000)), key)


def _content(root: Issuer, **changed: object) -> BundleContent:
    content = BundleContent(
        state="Beta",
        domain="beta.example",
        sequence=1,
        made=_NOW,
        next_update=_NOW + timedelta(days=30),
        roots=(root.certificate,),
        intermediates=(),
        links=(),
        crls=(),
        trusted=(),
    )
    return replace(content, **changed)  # type: ignore[arg-type]


def _signed(content: BundleContent, signer: Issuer) -> bytes:
    return cms.sign(encode(content), signer.certificate, signer.key)


def _typed(root: Issuer) -> str:
    return grouped(fingerprint(root.certificate))


def _refused(alpha: Console, data: bytes, says: str, typed: str = "") -> None:
    """The bundle is refused with that sentence, and nothing at all has changed."""
    before = alpha.store.snapshot()
    with pytest.raises(UserError, match=says):
        alpha.import_bundle(data, typed)
    after = alpha.store.snapshot()
    assert _rows(after) == _rows(before)


def _rows(snapshot: Snapshot) -> tuple[object, ...]:
    return (snapshot.states, snapshot.certificates, snapshot.trust, snapshot.bundles, snapshot.crls, snapshot.audit)


@pytest.fixture
def alpha(console: NewConsole) -> Console:
    return console("Alpha")


@pytest.fixture
def beta(alpha: Console) -> Issuer:
    """The root of Beta, whose first bundle Alpha has imported."""
    root = _root()
    alpha.import_bundle(_signed(_content(root), root), _typed(root))
    return root


def test_the_first_bundle_needs_its_fingerprint_typed(alpha: Console) -> None:
    root = _root()
    bundle = _signed(_content(root), root)
    assert must_be_confirmed(alpha.store.snapshot(), "Alpha", inspect_bundle(bundle))
    _refused(alpha, bundle, "have its fingerprint read to you")
    _refused(alpha, bundle, "not that of the root", _typed(_root()))
    _refused(alpha, bundle, "not that of the root", _typed(root)[:39])
    taken = alpha.import_bundle(bundle, _typed(root).lower().replace(" ", ":"))
    assert taken.first
    assert alpha.trusts() == {fingerprint(root.certificate)}
    assert "1 root" in taken.sentence() or "one root" in taken.sentence()
    assert not must_be_confirmed(alpha.store.snapshot(), "Alpha", inspect_bundle(bundle))


def test_a_bundle_goes_from_console_to_console(console: NewConsole) -> None:
    alpha, beta, gamma = console("Alpha"), console("Bêta République"), console("Gamma")
    beta.meets(gamma)
    assert alpha.meets(beta).state == "Bêta République"
    assert alpha.trusts() == {beta.root.sha256}
    beta.meets(alpha)
    taken = alpha.import_bundle(beta.bundle())  # the key is trusted by now
    assert not taken.first
    [newest] = [each for each in alpha.store.snapshot().bundles if each.sequence == 2]
    assert set(newest.trusted) == {beta.root.sha256, alpha.root.sha256, gamma.root.sha256}
    [remote] = [each for each in alpha.store.snapshot().states if not each.local]
    assert remote.domain == "bêta-république.example"


def test_an_imported_bundle_is_not_imported_again(alpha: Console, beta: Issuer) -> None:
    bundle = _signed(_content(beta, sequence=2), beta)
    alpha.import_bundle(bundle)
    _refused(alpha, bundle, "imported already: there is nothing to do")
    again = _signed(_content(beta, sequence=2), beta)  # same content, other signature
    assert again != bundle
    _refused(alpha, again, "imported already: there is nothing to do")


def test_of_two_concurrent_imports_of_one_bundle_one_succeeds(alpha: Console, beta: Issuer) -> None:
    bundle = _signed(_content(beta, sequence=2), beta)

    def other_console(_: int) -> str:
        with PkiStore.open(alpha.store.directory) as store:
            try:
                return import_bundle(store, "Alpha", bundle).sentence()
            except BadInput as error:
                return str(error)

    with ThreadPoolExecutor(4) as threads:
        sentences = sorted(threads.map(other_console, range(4)))
    assert [each.startswith("Alpha imported trust bundle 2") for each in sentences] == [True, False, False, False]
    assert all("imported already" in each for each in sentences[1:])


def test_an_older_bundle_is_refused(alpha: Console, beta: Issuer) -> None:
    second = _signed(_content(beta, sequence=2, made=_NOW - timedelta(days=2)), beta)
    alpha.import_bundle(_signed(_content(beta, sequence=3, made=_NOW - timedelta(days=1)), beta))
    _refused(alpha, second, "This is trust bundle 2 of Beta, and 3 was imported already")


def test_two_bundles_with_one_number_are_refused(alpha: Console, beta: Issuer) -> None:
    alpha.import_bundle(_signed(_content(beta, sequence=2), beta))
    other = _signed(_content(beta, sequence=2, domain="elsewhere.example"), beta)
    _refused(alpha, other, "Another trust bundle 2 of Beta")


def test_a_bundle_of_an_unknown_signer_is_refused(alpha: Console, beta: Issuer) -> None:
    outsider = _root()
    _refused(alpha, _signed(_content(outsider, sequence=2), outsider), "an unknown issuer", _typed(outsider))
    both = _content(outsider, sequence=2, roots=(outsider.certificate, beta.certificate))
    _refused(alpha, _signed(both, outsider), "an unknown issuer", _typed(outsider))
    _refused(alpha, _signed(_content(beta, sequence=2), outsider), "not signed with one of the roots")
    forged = cms.sign(encode(_content(beta, sequence=2)), beta.certificate, beta.key)
    with pytest.raises(BadInput):
        inspect_bundle(forged.replace(b"beta.example", b"evil.example"))


def test_a_name_in_other_case_is_the_same_state(alpha: Console, beta: Issuer) -> None:
    outsider = _root()
    _refused(alpha, _signed(_content(outsider, state="BETA"), outsider), "an unknown issuer", _typed(outsider))


def test_a_new_root_is_reached_by_a_link_certificate(alpha: Console, beta: Issuer) -> None:
    successor = _root()
    links = link_certificates(beta, successor)
    alone = _content(successor, sequence=2)
    _refused(alpha, _signed(alone, successor), "an unknown issuer")
    _refused(
        alpha, _signed(replace(alone, links=links[:1]), successor), "an unknown issuer"
    )  # old with new leads nowhere
    taken = alpha.import_bundle(_signed(replace(alone, links=links), successor))
    assert taken.trusted == (fingerprint(successor.certificate),)
    assert taken.withdrawn == (fingerprint(beta.certificate),)
    assert alpha.trusts() == {fingerprint(successor.certificate)}
    _refused(
        alpha, _signed(_content(beta, sequence=3), beta), "an unknown issuer"
    )  # the old key signs nothing any more


def test_links_lead_over_several_roots(alpha: Console, beta: Issuer) -> None:
    second, third = _root(), _root()
    links = (*link_certificates(second, third), *link_certificates(beta, second))
    missing = _content(third, sequence=2, roots=(third.certificate, second.certificate), links=links[:2])
    _refused(alpha, _signed(missing, third), "an unknown issuer")
    alpha.import_bundle(_signed(replace(missing, links=links), third))
    assert alpha.trusts() == {fingerprint(each.certificate) for each in (second, third)}


def test_a_revoked_link_leads_nowhere(alpha: Console, beta: Issuer) -> None:
    successor = _root()
    links = link_certificates(beta, successor)
    gone = Revoked(links[1].serial_number, _NOW, x509.ReasonFlags.key_compromise)
    crl = issue_crl(beta, [gone], 1, Validity.for_days(10))
    roots = (successor.certificate, beta.certificate)
    content_text = _content(successor, sequence=2, roots=roots, links=links, crls=(crl,))
    _refused(alpha, _signed(content_text, successor), "an unknown issuer")
    alpha.import_bundle(_signed(_content(beta, sequence=2, crls=(crl,)), beta))
    untold = _content(successor, sequence=3, links=links)
    _refused(alpha, _signed(untold, successor), "an unknown issuer")  # Alpha knows, also where the bundle is silent


def test_a_link_is_revoked_only_by_its_issuer(alpha: Console, beta: Issuer) -> None:
    successor = _root()
    links = link_certificates(beta, successor)
    namesake = _root()  # has the name of Beta's root, and another key; an attacker has sent it
    gone = Revoked(links[1].serial_number, _NOW, x509.ReasonFlags.key_compromise)
    crl = issue_crl(namesake, [gone], 1, Validity.for_days(10))
    import_certificates(alpha.store, as_pem(namesake.certificate))
    import_crl(alpha.store, as_pem(crl))
    assert alpha.import_bundle(_signed(_content(successor, sequence=2, links=links), successor)).trusted


def test_a_renewed_root_with_the_same_key_is_known(alpha: Console, beta: Issuer) -> None:
    renewed = Issuer(issue_root(beta.key, name_from_text("CN=Beta Root,O=Beta"), Validity.for_days(2000)), beta.key)
    assert alpha.import_bundle(_signed(_content(renewed, sequence=2), renewed)).trusted


def test_an_expired_root_signs_no_bundle(alpha: Console) -> None:
    old = _root(validity=Validity(_NOW - timedelta(days=9), _NOW - timedelta(days=1)))
    with alpha.store.change() as change:
        state = change.add_state("Beta", local=False)
        record = change.add_certificate(
            old.certificate, state=state.id, profile=CertificateProfile.ROOT, origin=Origin.IMPORTED
        )
        change.trust(alpha.state.id, record.id, TrustKind.ROOT, "fingerprint typed")
    renewed = Issuer(issue_root(old.key, name_from_text("CN=Beta Root,O=Beta"), Validity.for_days(99)), old.key)
    bundle = _signed(_content(renewed), renewed)
    assert must_be_confirmed(alpha.store.snapshot(), "Alpha", inspect_bundle(bundle))
    _refused(alpha, bundle, "have its fingerprint read to you")
    assert alpha.import_bundle(bundle, _typed(renewed)).first


def test_withdrawn_trust_needs_the_fingerprint_again(alpha: Console) -> None:
    root = _root()
    bundle = _signed(_content(root), root)
    alpha.import_bundle(bundle, _typed(root))
    with alpha.store.change() as change:
        [row] = change.snapshot().trust
        change.withdraw_trust(row.id)
    _refused(alpha, bundle, "have its fingerprint read to you")
    assert alpha.import_bundle(bundle, _typed(root)).first
    assert alpha.trusts() == {fingerprint(root.certificate)}


def test_a_stale_bundle_is_reported(alpha: Console) -> None:
    root = _root()
    old = _content(root, made=_NOW - timedelta(days=40), next_update=_NOW - timedelta(days=10))
    taken = alpha.import_bundle(_signed(old, root), _typed(root))
    assert "should have been followed by a newer one" in taken.sentence()


def test_a_bundle_from_the_future_is_refused(alpha: Console) -> None:
    root = _root()
    ahead = _content(root, made=_NOW + timedelta(hours=2))
    _refused(alpha, _signed(ahead, root), "check the clock of this computer", _typed(root))


def test_a_root_outside_its_validity_signs_nothing(alpha: Console) -> None:
    ahead = _root(validity=Validity(_NOW + timedelta(days=1), _NOW + timedelta(days=9)))
    _refused(alpha, _signed(_content(ahead), ahead), "not valid before .* check the clock", _typed(ahead))
    over = _root(validity=Validity(_NOW - timedelta(days=9), _NOW - timedelta(days=1)))
    _refused(alpha, _signed(_content(over), over), "expired on", _typed(over))


def test_two_certificates_with_one_serial_number_are_refused(alpha: Console, beta: Issuer) -> None:
    first = _intermediate(beta, "One")
    alpha.import_bundle(_signed(_content(beta, sequence=2, intermediates=(first,)), beta))
    twin = _with_serial(beta, first.serial_number)
    inside = _content(beta, sequence=3, intermediates=(first, twin))
    _refused(alpha, _signed(inside, beta), "have the serial number")
    _refused(alpha, _signed(_content(beta, sequence=3, intermediates=(twin,)), beta), "same issuer")


def _intermediate(root: Issuer, name: str) -> x509.Certificate:
    key, subject = generate(KeyType.P_256).public_key(), name_from_text(f"CN={name}")
    return issue(root, key, subject, (), CertificateProfile.INTERMEDIATE, Validity.for_days(100))


def _with_serial(root: Issuer, serial: int) -> x509.Certificate:
    other = _intermediate(root, "Two")
    builder = x509.CertificateBuilder(
        other.issuer, other.subject, other.public_key(), serial, other.not_valid_before_utc, other.not_valid_after_utc,
        list(other.extensions),
    )  # fmt: skip
    return builder.sign(root.key, other.signature_hash_algorithm)  # type: ignore[arg-type]


def _foreign_crl(root: Issuer) -> BundleContent:
    return _content(root, crls=(issue_crl(_root(), [], 1, Validity.for_days(9)),))


def _foreign_intermediate(root: Issuer) -> BundleContent:
    return _content(root, intermediates=(_intermediate(_root(), "Foreign"),))


def _foreign_link(root: Issuer) -> BundleContent:
    return _content(root, links=link_certificates(_root("One"), _root("Two")))


def _end_certificate_as_root(root: Issuer) -> BundleContent:
    key, subject = generate(KeyType.P_256).public_key(), name_from_text("CN=end")
    names = [x509.DNSName("end.beta.example")]
    end = issue(root, key, subject, names, CertificateProfile.TLS_SERVER, Validity.for_days(9))
    return _content(root, roots=(root.certificate, end))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (_foreign_crl, "CRL .* not signed by the CAs in it"),
        (_foreign_intermediate, "not issued by its roots"),
        (_foreign_link, "belongs to none of its roots"),
        (_end_certificate_as_root, "not a CA's certificate"),
        (lambda root: _content(root, roots=(root.certificate, _intermediate(root, "X"))), "not signed by itself"),
        (lambda root: _content(root, roots=()), "holds no root"),
        (lambda root: _content(root, roots=(root.certificate,) * 17), "more than 16"),
        (lambda root: _content(root, sequence=0), "out of bounds"),
        (lambda root: _content(root, sequence=2**53 + 1), "out of bounds"),
        (lambda root: _content(root, state="  "), "names no State"),
        (lambda root: _content(root, state="Beta\u202egnus"), "names no State"),
        (lambda root: _content(root, state="B" * 65), "names no State"),
        (lambda root: _content(root, next_update=_NOW), "ends before it begins"),
        (lambda root: _content(root, trusted=("ab",)), "not one of SHA-256"),
    ],
)
def test_inconsistent_bundles_are_refused(make: Callable[[Issuer], BundleContent], says: str, alpha: Console) -> None:
    root = _root()
    _refused(alpha, _signed(make(root), root), says, _typed(root))


def test_the_root_of_another_state_cannot_be_claimed(alpha: Console, beta: Issuer) -> None:
    mallory = _root("Mallory")
    content = _content(mallory, state="Mallory", roots=(mallory.certificate, beta.certificate))
    _refused(alpha, _signed(content, mallory), "is known as that of Beta", _typed(mallory))


def test_crls_and_intermediates_come_along_and_crls_do_not_go_back(alpha: Console) -> None:
    root = _root()
    intermediate = _intermediate(root, "Beta Intermediate")
    newer = issue_crl(root, [], 2, Validity(_NOW - timedelta(days=1), _NOW + timedelta(days=9)))
    older = issue_crl(root, [], 1, Validity(_NOW - timedelta(days=2), _NOW + timedelta(days=9)))
    content = _content(root, intermediates=(intermediate,), crls=(newer,))
    alpha.import_bundle(_signed(content, root), _typed(root))
    alpha.import_bundle(_signed(replace(content, sequence=2, crls=(older,)), root))
    snapshot = alpha.store.snapshot()
    assert [each.number for each in snapshot.crls] == [2]
    record = snapshot.certificate_by_sha256[fingerprint(intermediate)]
    assert record.profile is CertificateProfile.INTERMEDIATE
    assert record not in snapshot.trusted_by(alpha.state.id, TrustKind.ROOT)


def test_own_bundle_and_bundle_for_an_unknown_state_are_refused(alpha: Console) -> None:
    bundle = alpha.bundle()
    assert not must_be_confirmed(alpha.store.snapshot(), "Alpha", inspect_bundle(bundle))
    with pytest.raises(BadInput, match="of Alpha itself"):
        alpha.import_bundle(bundle)
    with alpha.store.change() as change:
        change.add_state("Beta", local=False)
    for importer, said in (("Nobody", "No State is called"), ("Beta", "of another console")):
        with pytest.raises(UserError, match=said):
            must_be_confirmed(alpha.store.snapshot(), importer, inspect_bundle(bundle))


def test_another_kind_of_file_is_named_in_the_refusal(alpha: Console) -> None:
    bundle, root = alpha.bundle(), _root()
    key = root.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    _refused(alpha, key, "holds a private key and not a signed file .* keep this one secret")
    _refused(alpha, root.certificate.public_bytes(Encoding.DER), "holds a certificate and not a signed file")
    _refused(alpha, bundle[:500], "is cut off, [0-9]+ bytes are missing")
    _refused(alpha, b"hello", "not CMS SignedData")


def test_another_signed_file_is_not_a_bundle(alpha: Console) -> None:
    root = _root()
    for content in (b"", b"hello", b"\x30\x00", encode(_content(root)) + b"\x00"):
        _refused(alpha, cms.sign(content, root.certificate, root.key), "is not a trust bundle", _typed(root))


def test_a_state_without_a_root_makes_no_bundle(console: NewConsole) -> None:
    alpha = console("Alpha")
    with alpha.store.change() as change:
        change.add_state("Empty")
        change.add_state("Remote", local=False)
    for name in ("Empty", "Remote", "Nobody"):
        with pytest.raises(UserError):
            replace(alpha, state=replace(alpha.state, name=name)).bundle()


def test_bundle_that_changes_its_domain_is_imported_once_that_is_confirmed(alpha: Console, beta: Issuer) -> None:
    """A later bundle changed the domain of its State in silence."""
    moved = _signed(_content(beta, domain="alpha-two.example", sequence=2), beta)
    _refused(alpha, moved, "Beta claims alpha-two.example, and had beta.example before")
    with pytest.raises(BadInput):
        import_bundle(alpha.store, "Alpha", moved, "", "beta.example")
    import_bundle(alpha.store, "Alpha", moved, "", "alpha-two.example")
    assert alpha.store.state("Beta").domain == "alpha-two.example"
    assert any(entry.what == "claimed domain" for entry in alpha.store.audit())
    dropped = _signed(_content(beta, domain="", sequence=3), beta)
    _refused(alpha, dropped, "no domain, so that any name would be accepted")
    assert "may have any name" in import_bundle(alpha.store, "Alpha", dropped, "", "").sentence()


def test_first_bundle_that_claims_the_domain_of_another_state_is_a_question(alpha: Console) -> None:
    root = _root()
    bundle = _signed(_content(root, domain="swim.alpha.example"), root)
    _refused(alpha, bundle, "Alpha has claimed alpha.example", _typed(root))
    assert import_bundle(alpha.store, "Alpha", bundle, _typed(root), "swim.alpha.example").first


def test_bundle_with_a_ca_named_outside_the_domain_is_refused(alpha: Console, beta: Issuer) -> None:
    key = generate(KeyType.P_256)
    names = [x509.DNSName("ca.alpha.example")]
    subject = name_from_text("CN=Beta Below,O=Beta")
    below = issue(beta, key.public_key(), subject, names, CertificateProfile.INTERMEDIATE, Validity.for_days(90))
    bundle = _signed(_content(beta, sequence=2, intermediates=(below,)), beta)
    _refused(alpha, bundle, r"ca\.alpha\.example is outside the domain of Beta")
