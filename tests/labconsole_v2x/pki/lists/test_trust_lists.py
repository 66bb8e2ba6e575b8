"""Trust and revocation lists are what a second codec reads and writes; other octets are refused with a reason."""

from __future__ import annotations

import pytest

from labconsole_v2x.pki.lists.trust_lists import (
    AaEntry,
    CentreEntry,
    Command,
    DeletedCentre,
    DeletedCertificate,
    EaEntry,
    RevocationList,
    RootEntry,
    TlmEntry,
    TrustList,
    applied,
    changes,
    encode_revocation_list,
    encode_trust_list,
    read_revocation_list,
    read_trust_list,
)
from labconsole_v2x.pki.request_parts import Content, encode_data, read_data
from labconsole_v2x.security.encoding import EncodingError
from labconsole_v2x.security.issuing import LabPki
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.structures import Circle
from tests.labconsole_v2x.pki import second_codec

PKI = LabPki.create(720_000_000, region=Circle(1, -2, 3))
ID = bytes(range(8))
URL = "http://dc.test/"
TLM_ENTRIES = (RootEntry(PKI.root), TlmEntry(PKI.tlm, URL), CentreEntry(URL, (PKI.root.hashed_id8,)))
TLM_LINKED = (RootEntry(PKI.root, PKI.tlm.octets), TlmEntry(PKI.tlm, URL, PKI.root.octets), CentreEntry("", ()))
ROOT_ENTRIES = (EaEntry(PKI.ea, "http://a/", "http://b/"), EaEntry(PKI.ea, "http://a/"), AaEntry(PKI.aa, URL))
DELETIONS = (DeletedCertificate(ID), DeletedCentre(URL))
LISTS = [
    (Content.TLM_TRUST_LIST, TrustList(True, 0, 5, TLM_ENTRIES)),
    (Content.TLM_TRUST_LIST, TrustList(False, 255, 2**32 - 1, (*DELETIONS, *TLM_LINKED))),
    (Content.ROOT_TRUST_LIST, TrustList(True, 128, 0, ROOT_ENTRIES)),
    (Content.ROOT_TRUST_LIST, TrustList(False, 1, 7, (*ROOT_ENTRIES, *DELETIONS))),
    (Content.ROOT_TRUST_LIST, TrustList(True, 1, 7, ())),
]


@pytest.mark.parametrize(("content", "trust_list"), LISTS)
def test_a_second_codec_reads_and_writes_trust_lists(content: Content, trust_list: TrustList) -> None:
    octets = encode_trust_list(trust_list)
    assert read_data(encode_data(content, octets)) == (content, octets)
    assert read_trust_list(octets, content) == trust_list
    kind, values = second_codec.decode("Data", encode_data(content, octets))["content"]
    assert kind == {Content.TLM_TRUST_LIST: "ctlTlm", Content.ROOT_TRUST_LIST: "ctlRca"}[content]
    assert (values["version"], values["isFullCtl"], values["ctlSequence"], values["nextUpdate"]) == (
        1,
        trust_list.is_full,
        trust_list.sequence,
        trust_list.next_update_s,
    )
    assert [second_name(command) for command in values["ctlCommands"]] == [
        name(command) for command in trust_list.commands
    ]


def second_name(command: tuple[str, tuple[str, object]]) -> tuple[str, str]:
    kind, (what, _) = command
    return kind, what


def name(command: Command) -> tuple[str, str]:
    match command:
        case DeletedCertificate():
            return "delete", "cert"
        case DeletedCentre():
            return "delete", "dc"
    names = {RootEntry: "rca", EaEntry: "ea", AaEntry: "aa", CentreEntry: "dc", TlmEntry: "tlm"}
    return "add", names[type(command)]


@pytest.mark.parametrize("entries", [(), (ID,), (ID, bytes(8))])
def test_a_second_codec_reads_and_writes_revocation_lists(entries: tuple[bytes, ...]) -> None:
    revocation_list = RevocationList(5, 2**32 - 1, entries)
    octets = encode_revocation_list(revocation_list)
    assert read_revocation_list(octets) == revocation_list
    kind, values = second_codec.decode("Data", encode_data(Content.REVOCATION_LIST, octets))["content"]
    assert (kind, values) == (
        "crl",
        {"version": 1, "thisUpdate": 5, "nextUpdate": 2**32 - 1, "entries": list(entries)},
    )


def test_fields_of_a_later_version_are_skipped() -> None:
    further = b"\x02\x07\x80\x01\xaa"
    octets = encode_trust_list(TrustList(True, 3, 5, ROOT_ENTRIES))
    assert read_trust_list(b"\x80" + octets[1:] + further, Content.ROOT_TRUST_LIST).sequence == 3
    octets = encode_revocation_list(RevocationList(1, 2, (ID,)))
    assert read_revocation_list(b"\x80" + octets[1:] + further).entries == (ID,)


@pytest.mark.parametrize(
    ("content", "commands", "is_full"),
    [
        (Content.ROOT_TRUST_LIST, TLM_ENTRIES[:1], True),
        (Content.ROOT_TRUST_LIST, TLM_ENTRIES[1:2], True),
        (Content.TLM_TRUST_LIST, ROOT_ENTRIES[:1], True),
        (Content.TLM_TRUST_LIST, ROOT_ENTRIES[2:], False),
        (Content.ROOT_TRUST_LIST, DELETIONS[:1], True),
        (Content.TLM_TRUST_LIST, DELETIONS[1:], True),
    ],
)
def test_entries_that_a_list_must_not_have_are_refused(
    content: Content, commands: tuple[Command, ...], is_full: bool
) -> None:
    octets = encode_trust_list(TrustList(is_full, 1, 5, commands))
    with pytest.raises(MalformedDataError, match=r"in a (full )?list"):
        read_trust_list(octets, content)


def test_other_octets_are_refused() -> None:
    right = encode_trust_list(TrustList(False, 3, 5, (*ROOT_ENTRIES, *DELETIONS)))
    for size in range(len(right)):
        with pytest.raises(MalformedDataError):
            read_trust_list(right[:size], Content.ROOT_TRUST_LIST)
    for wrong, reason in (
        (right + b"\0", "Trailing"),
        (b"\0\x01\x02" + right[3:], "another version"),
        (right[:7] + b"\x01" + right[8:], "boolean"),
        (right[:9] + b"\x02\xff\xff", "List of 65535"),
        (right[:9] + b"\x01\x01\x82\x80", "Command of kind 2"),
        (right[:9] + b"\x01\x01\x81\x81\x01\xff", "broken text"),
    ):
        with pytest.raises(MalformedDataError, match=reason):
            read_trust_list(wrong, Content.ROOT_TRUST_LIST)
    with pytest.raises(EncodingError, match="not ASCII"):
        encode_trust_list(TrustList(True, 1, 5, (AaEntry(PKI.aa, "http://é/"),)))


def test_changes_between_two_states_lead_from_one_to_the_other() -> None:
    moved = AaEntry(PKI.aa, "http://moved/")
    states: list[tuple[EaEntry | AaEntry | CentreEntry, ...]] = [
        (),
        (EaEntry(PKI.ea, "http://a/"), AaEntry(PKI.aa, URL), CentreEntry(URL, (ID,))),
        (moved, CentreEntry(URL, ())),
        (moved,),
    ]
    for old in states:
        for new in states:
            commands = changes(old, new)
            assert set(applied(old, commands)) == set(new)
            assert bool(commands) == (old != new)
    assert changes(states[1], states[2]) == (
        DeletedCertificate(PKI.ea.hashed_id8),
        DeletedCertificate(PKI.aa.hashed_id8),
        DeletedCentre(URL),
        moved,
        CentreEntry(URL, ()),
    )
