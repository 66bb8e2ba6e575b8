"""Octets that others have published decode, encode to the same octets, and are right by their signatures."""

from __future__ import annotations

import pytest

from labconsole_v2x.pki.lists.signed_lists import ListReason, RefusedListError
from labconsole_v2x.pki.lists.station_trust import StationTrust
from labconsole_v2x.pki.lists.trust_lists import RootEntry, encode_trust_list, read_trust_list
from labconsole_v2x.pki.request_parts import Content, encode_data, read_data
from labconsole_v2x.pki.secured_messages import is_signed_by
from labconsole_v2x.security.chain import link_fault
from labconsole_v2x.security.encoding import (
    encode_signature,
    encode_signed_data,
    encode_signer,
    encode_to_be_signed_data,
)
from labconsole_v2x.security.scanning import UnsupportedError, scan_certificate, scan_signed_data
from labconsole_v2x.security.structures import SignedData
from labconsole_v2x.security.trust import TrustStore, software_verifier
from tests.labconsole_v2x.pki import second_codec
from tests.labconsole_v2x.pki.published_vectors import (
    EU_ECTL,
    KOREAN_ENROLMENT_RESPONSE,
    KOREAN_ICA,
    KOREAN_ROOT,
)
from tests.labconsole_v2x.security import second_codec as ieee1609_codec

ISSUED_US = 669_386_121_999_000
"""The generation time of the ECTL: March 2025."""


def encoded_again(data: SignedData) -> bytes:
    """Signed data from what was read of it."""
    assert data.payload is not None and encode_to_be_signed_data(data.payload, data.header) == data.tbs
    signer = encode_signer(data.certificates, data.digest)
    return encode_signed_data(data.hash_name, data.tbs, signer, encode_signature(data.signature))


def test_the_ectl_of_the_eu_decodes_and_encodes_to_the_same_octets() -> None:
    data = scan_signed_data(EU_ECTL)
    assert encoded_again(data) == EU_ECTL and data.payload is not None
    content, message = read_data(data.payload)
    trust_list = read_trust_list(message, content)
    assert content is Content.TLM_TRUST_LIST
    assert encode_data(content, encode_trust_list(trust_list)) == data.payload
    roots = [one.certificate.name for one in trust_list.commands if isinstance(one, RootEntry)]
    assert roots == ["1_EU-ROOT-CA_L2", "3_Microsec-CCMS-RCA-2024_L2"]
    kind, values = second_codec.decode("Data", data.payload)["content"]
    assert kind == "ctlTlm" and (values["ctlSequence"], values["nextUpdate"]) == (1, trust_list.next_update_s)
    assert [what for _, (what, _) in values["ctlCommands"]] == ["rca", "rca", "tlm", "dc", "dc"]


def test_a_station_that_trusts_the_tlm_of_the_eu_follows_its_ectl() -> None:
    (tlm,) = scan_signed_data(EU_ECTL).certificates
    now_us = ISSUED_US + 60_000_000
    store = TrustStore()
    trust = StationTrust(store, tlm=scan_certificate(tlm), clock=lambda: now_us)
    opened = trust.apply_trust_list(EU_ECTL)
    assert opened.signer.name == "EU-TLM_L2" and len(trust.roots) == 2 == len(store)
    assert [centre.url for centre in trust.centres] == [
        "http://microsec-ccms-dc-2024-l2.v2x-pki.com/",
        "http://1.eu-dc.l2.c-its-eu-rca.eu",
    ]
    damaged = EU_ECTL.replace(b"1_EU-ROOT-CA_L2", b"1_EU-ROOT-CA_L3")
    with pytest.raises(RefusedListError) as failure:
        trust.apply_trust_list(damaged)
    assert failure.value.reason is ListReason.SIGNATURE_INVALID
    now_us += 365 * 86_400_000_000
    with pytest.raises(RefusedListError) as failure:
        trust.apply_trust_list(EU_ECTL)
    assert failure.value.reason is ListReason.EXPIRED


def test_a_korean_enrolment_chain_is_read_and_verified() -> None:
    response = scan_signed_data(KOREAN_ENROLMENT_RESPONSE)
    assert encoded_again(response) == KOREAN_ENROLMENT_RESPONSE
    (eca_octets,) = response.certificates
    root, ica, eca = (scan_certificate(octets) for octets in (KOREAN_ROOT, KOREAN_ICA, eca_octets))
    verifier = software_verifier
    TrustStore().add_root(root)
    assert link_fault(ica, (root,), verifier(root.verification_key)) is None
    assert link_fault(eca, (ica, root), verifier(ica.verification_key)) is None
    assert is_signed_by(response, eca.verification_key, eca.canonical)
    assert ica.region == frozenset({410, 124, 484, 840, 724, 276, 826})
    for certificate in (root, ica, eca):
        # Two other codecs read the same, and write the same octets.
        values = ieee1609_codec.decode_certificate(certificate.octets)
        assert values["toBeSigned"]["id"] == ("name", certificate.name)
        assert second_codec.decode("Certificate", certificate.octets)["toBeSigned"]["id"] == ("name", certificate.name)


def test_the_implicit_certificate_of_a_korean_station_is_named_as_not_supported() -> None:
    payload = scan_signed_data(KOREAN_ENROLMENT_RESPONSE).payload
    assert payload is not None
    implicit = payload[payload.index(b"\x00\x03\x01\x80") : -32]
    with pytest.raises(UnsupportedError, match="Implicit certificate"):
        scan_certificate(implicit)
