"""Damaged bundles: whatever bytes differ, in the file or in what a trusted State has signed, there is one sentence."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from asn1crypto import core

from labconsole.errors import BadInput
from labconsole.security.x509 import cms
from labconsole.security.x509.crl_issuing import issue_crl
from labconsole.security.x509.issuing import Issuer, link_certificates
from labconsole.security.x509.validity import Validity
from labconsole_certificates.trust.bundle_format import BundleContent, decode, encode
from labconsole_certificates.trust.bundle_inspection import inspect_bundle
from tests.helpers.authorities import new_authority
from tests.helpers.mutations import mutations, tenth_and_all
from tests.labconsole_certificates.trust.conftest import Console, NewConsole

_MADE = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture(scope="module")
def root() -> Issuer:
    return new_authority("Beta Root")


@pytest.fixture(scope="module")
def content(root: Issuer) -> BundleContent:
    successor = new_authority("Beta Root 2")
    return BundleContent(
        state="Bêta",
        domain="beta.example",
        sequence=3,
        made=_MADE,
        next_update=_MADE + timedelta(days=30),
        roots=(root.certificate, successor.certificate),
        intermediates=(),
        links=link_certificates(root, successor),
        crls=(issue_crl(root, [], 1, Validity.for_days(9)),),
        trusted=("ab" * 32, "cd" * 32),
    )


def test_what_was_encoded_is_decoded(content: BundleContent) -> None:
    assert decode(encode(content)) == content


@pytest.mark.parametrize("count", tenth_and_all(500))
def test_a_damaged_file_is_refused_or_says_the_same(content: BundleContent, root: Issuer, count: int) -> None:
    signed = cms.sign(encode(content), root.certificate, root.key)
    refused = 0
    for damaged in mutations(signed, count, seed=1):
        try:
            look = inspect_bundle(damaged)
        except BadInput:
            refused += 1
        else:
            assert (look.content, look.signer) == (content, root.certificate)
    assert refused > count * 0.9


@pytest.mark.parametrize("share", [0.02, 0.25, 0.5, 0.75, 0.98])
def test_a_truncated_file_is_refused(share: float, content: BundleContent, root: Issuer) -> None:
    signed = cms.sign(encode(content), root.certificate, root.key)
    with pytest.raises(BadInput):
        inspect_bundle(signed[: int(len(signed) * share)])


@pytest.mark.parametrize("count", tenth_and_all(1000))
def test_damage_that_was_signed_is_refused_or_encodes_to_itself(content: BundleContent, count: int) -> None:
    """A State may sign nonsense: no two encodings mean the same, and nothing but BadInput is raised."""
    encoded = encode(content)
    outcomes: Counter[str] = Counter()
    for damaged in mutations(encoded, count, seed=2):
        try:
            decoded = decode(damaged)
        except BadInput as error:
            outcomes[str(error)] += 1
        else:
            assert encode(decoded) == damaged
            outcomes["decoded"] += 1
    assert len(outcomes) > 5  # the damage reaches deep: not all fails at the first byte


@pytest.mark.parametrize("count", tenth_and_all(100))
def test_signed_damage_changes_nothing_when_it_is_refused(
    content: BundleContent, root: Issuer, console: NewConsole, count: int
) -> None:
    alpha: Console = console("Alpha")
    encoded, before = encode(content), alpha.store.snapshot()
    refused = 0
    for damaged in mutations(encoded, count, seed=3):
        signed = cms.sign(damaged, root.certificate, root.key)
        try:
            alpha.import_bundle(signed)  # the fingerprint is not typed: none may pass
        except BadInput:
            refused += 1
    assert refused == count
    assert alpha.store.snapshot() == before


def test_a_version_of_thousands_of_digits_is_refused(content: BundleContent) -> None:
    """Python prints no number of more than 4,300 digits."""
    bundle = core.Sequence.load(encode(content))
    fields = [bundle[index].dump() for index in range(len(bundle))]
    fields[1] = core.Integer(1 << 20_000).dump()
    grown = core.Sequence(contents=b"".join(fields)).dump()
    with pytest.raises(BadInput, match="is not of version 1"):
        decode(grown)
