"""Damaged trust and revocation lists are refused by reason: on their way, and with a content that is signed again.

`LABCONSOLE_MUTATED_REQUESTS=100000 pytest -k mutated_lists -s` runs as many of each kind by hand and prints counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from labconsole_v2x.pki.lists.signed_lists import ListReason, RefusedListError
from labconsole_v2x.pki.lists.trust_lists import AaEntry, DeletedCentre, DeletedCertificate
from labconsole_v2x.pki.secured_messages import payload_of
from labconsole_v2x.security.encoding import encode_signed_data, encode_signer
from labconsole_v2x.security.keys import SoftwareKey, signature_digest
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.signing import PacketSigner
from labconsole_v2x.security.structures import Certificate
from tests.helpers.mutations import mutations
from tests.labconsole_v2x.pki.lists.lists_lab import DC_URL, ListsLab, trusted
from tests.labconsole_v2x.pki.pki_lab import AA_URL, NOW_US


def delta(lab: ListsLab) -> bytes:
    deletions = (DeletedCertificate(lab.pki.aa.hashed_id8), DeletedCentre(DC_URL))
    commands = (*deletions, AaEntry(lab.pki.aa, AA_URL))
    return lab.ctl(commands, sequence=2, is_full=False, issued_us=NOW_US + 1)


def damaged(octets: bytes, key: SoftwareKey, certificate: Certificate, count: int) -> Iterator[bytes]:
    """Lists damaged on their way; with a damaged payload signed again; with damaged ToBeSignedData signed again."""
    data, rest = scan_signed_data(octets), count - 2 * (count // 3)
    yield from mutations(octets, count // 3, 1)
    signer = PacketSigner(certificate, key)
    for payload in mutations(payload_of(data), rest, 2):
        yield signer.sign(payload, data.header, include_certificate=True)
    for tbs in mutations(data.tbs, count // 3, 3):
        signature = key.sign_digest(signature_digest(data.hash_name, tbs, certificate.canonical))
        yield encode_signed_data(data.hash_name, tbs, encode_signer([certificate.octets]), signature)


KINDS: dict[str, Callable[[ListsLab], bytes]] = {
    "ectl": lambda lab: lab.ectl(sequence=2, issued_us=NOW_US + 1),
    "ctl": lambda lab: lab.ctl(sequence=2, issued_us=NOW_US + 1),
    "delta": delta,
    "crl": lambda lab: lab.crl(lab.pki.aa.hashed_id8, bytes(8)),
}


@pytest.mark.parametrize("count", [1_000, pytest.param(5_000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("kind", KINDS)
def test_mutated_lists_are_refused_by_reason_and_change_nothing(kind: str, count: int) -> None:
    """Nightly: 5,000 of each kind alone find rare damage that is not refused by a reason."""
    pki = ListsLab().pki
    key, certificate = (pki.tlm_key, pki.tlm) if kind == "ectl" else (pki.root_key, pki.root)

    def station() -> ListsLab:
        lab = ListsLab(pki)
        lab.apply_all()
        return lab

    lab = station()
    lab.now_us += 1
    octets, before = KINDS[kind](lab), trusted(lab)
    counts: Counter[str] = Counter()
    for mutated in damaged(octets, key, certificate, count):
        apply = lab.trust.apply_revocation_list if kind == "crl" else lab.trust.apply_trust_list
        try:
            apply(mutated)
        except RefusedListError as error:
            assert error.detail and trusted(lab) == before
            counts[error.reason] += 1
        else:
            counts["applied"] += 1
            lab = station()
    print(kind, dict(counts))
    assert sum(counts.values()) == count
    assert counts[ListReason.MALFORMED] > count // 3 and len(counts) > 5
    # Other URLs, times and identifiers, signed again, are right lists of another content.
    assert counts["applied"] < count // 4
