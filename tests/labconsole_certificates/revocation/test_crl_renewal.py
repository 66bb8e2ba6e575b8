"""CRLs that come to their end: reported early, and renewed where no passphrase is needed."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from labconsole.cli.main import main
from labconsole.security.certificate_status import StatusKind, status_of
from labconsole.security.pki.keys import opened_key
from labconsole.security.pki.records import CertificateRecord, CrlRecord
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Secret, SecretSource
from labconsole.security.token.softhsm import library
from labconsole.security.x509.crl_issuing import issue_crl
from labconsole.security.x509.issuing import Issuer
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.authorities import create_intermediate, create_root
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.states import add_state
from labconsole_certificates.revocation.crl_operations import publish_crl
from labconsole_certificates.revocation.crl_renewal import due_crls, renew_crls
from labconsole_certificates.trust.bundle_creation import expiring_crls, make_bundle
from labconsole_certificates.trust.bundle_inspection import inspect_bundle
from labconsole_certificates.upkeep import checks, upkeep
from tests.labconsole_certificates.three_states import ThreeStates

TYPED = Secret("typed-2468")
ASKED = NewKey(passphrase=SecretSource())


def typed(_purpose: str) -> Secret:
    return TYPED


def published(world: ThreeStates, authority: CertificateRecord, days_ago: float, passphrase: bool = False) -> CrlRecord:
    """A CRL for 30 days, as it was signed some days ago."""
    snapshot = world.store.snapshot()
    assert authority.key is not None
    begun = datetime.now(UTC).replace(microsecond=0) - timedelta(days=days_ago)
    key = snapshot.key_by_id[authority.key]
    with opened_key(world.store.directory, key, typed if passphrase else None) as private:
        crl = issue_crl(Issuer(authority.certificate, private), [], 1, Validity(begun, begun + timedelta(days=30)))
    with world.store.change() as change:
        return change.add_crl(crl, authority.id)


def now() -> datetime:
    return datetime.now(UTC)


def test_a_crl_lasts_30_days_and_is_due_in_its_last_third(world: ThreeStates) -> None:
    record = publish_crl(world.store, world.root_b)
    assert (record.next_update - now()).days in (29, 30)
    snapshot = world.store.snapshot()
    for days, due, expired in ((0, False, False), (19, False, False), (21, True, False), (31, True, True)):
        found = due_crls(snapshot, now() + timedelta(days=days))
        assert [(one.authority, one.expired) for one in found] == ([(world.root_b, expired)] if due else [])


def test_renewal_needs_no_question_where_the_passphrase_is_kept(world: ThreeStates) -> None:
    old = published(world, world.root_b, 25)
    (renewed,) = renew_crls(world.store)
    assert renewed.number == old.number + 1 and renewed.issuer == world.root_b.id
    assert (renewed.next_update - renewed.this_update).days == 30
    assert renew_crls(world.store) == ()


def test_a_ca_without_any_crl_gets_none(world: ThreeStates) -> None:
    assert renew_crls(world.store) == () and not world.store.snapshot().crls


def test_a_typed_passphrase_is_never_asked_for_but_the_crl_is_reported(
    world: ThreeStates, capsys: pytest.CaptureFixture[str]
) -> None:
    root = create_root(world.store, world.a, ASKED, prompt=typed)
    published(world, root, 25, passphrase=True)
    upkeep()
    [due] = due_crls(world.store.snapshot(), now())
    assert due.authority == root
    assert due.sentence().startswith("The CRL of State A Root CA expires on ") and "in 4 days" in due.sentence()
    [check] = checks()
    assert not check.ok and check.found == due.sentence()
    status = status_of(root, world.store.snapshot(), now())
    assert status.kind is StatusKind.EXPIRING and status.cause.startswith("Its CRL expires on ")
    for command in ("list", "rotations"):
        assert main(["pki", command]) == 0
        assert "The CRL of State A Root CA expires" in " ".join(capsys.readouterr().out.split())
    assert main(["doctor"]) == 1
    assert "The CRL of State" in " ".join(capsys.readouterr().out.split())


@pytest.mark.skipif(library() is None, reason="SoftHSM2 is needed")
def test_a_key_in_a_token_is_never_opened_for_a_renewal(world: ThreeStates) -> None:
    """Not even by a PIN that is kept: one that is refused may lock the token."""
    root = create_root(world.store, world.a, NewKey(KeyType.P_256, token="lab"))
    published(world, root, 25)
    upkeep()
    [due] = due_crls(world.store.snapshot(), now())
    assert due.authority == root and len(world.store.snapshot().crls) == 1


def test_upkeep_renews_due_crls(world: ThreeStates) -> None:
    published(world, world.root_b, 25)
    assert not checks()[0].ok
    upkeep()
    assert [crl.number for crl in world.store.snapshot().crls] == [1, 2]
    assert checks()[0].ok


def test_a_bundle_renews_the_crl_of_the_root_that_signs_it(world: ThreeStates) -> None:
    """Its passphrase is asked for anyway, once; that of an intermediate is not, and its CRL is reported."""
    state = add_state(world.store, "State D")
    root = create_root(world.store, state, ASKED, prompt=typed)
    lower = create_intermediate(world.store, root, state, ASKED, prompt=typed)
    published(world, root, 31, passphrase=True)
    published(world, lower, 31, passphrase=True)
    asked = []

    def prompt(purpose: str) -> Secret:
        asked.append(purpose)
        return TYPED

    content = inspect_bundle(make_bundle(world.store, state.name, prompt=prompt)).content
    assert len(asked) == 1
    ends = {crl.issuer: crl.next_update_utc for crl in content.crls}
    end = ends[root.certificate.subject]
    assert end is not None and end > now() + timedelta(days=29)
    assert expiring_crls(content).startswith("The CRL of State D Intermediate CA in it expired on ")


def test_the_bundle_command_reports_an_expired_crl(
    world: ThreeStates, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lower = create_intermediate(world.store, world.root_a, world.a, ASKED, prompt=typed)
    published(world, lower, 31, passphrase=True)
    assert main(["pki", "bundle", world.a.name, str(tmp_path / "a.cms")]) == 0
    assert "The CRL of State A Intermediate CA in it expired on" in " ".join(capsys.readouterr().err.split())


def test_crls_that_are_published_at_once_get_one_number_each(world: ThreeStates) -> None:
    """Eight processes at once: five were refused."""
    numbers: list[int] = []
    begin = threading.Barrier(8)

    def publish() -> None:
        with PkiStore.open(world.store.directory) as store:
            begin.wait()
            numbers.append(publish_crl(store, world.root_b).number)

    threads = [threading.Thread(target=publish) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 9))
