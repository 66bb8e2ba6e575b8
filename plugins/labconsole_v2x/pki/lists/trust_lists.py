"""Trust and revocation lists of TS 102 941, annex A.2 (EtsiTs102941TrustLists): CTL of a TLM or root CA, and CRL."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from labconsole_v2x.pki.request_parts import Content, read_whole, skip_extensions
from labconsole_v2x.security.encoding import EncodingError, encode_list, encode_octets
from labconsole_v2x.security.reading import (
    malformed,
    read_choice,
    read_fixed,
    read_list,
    read_octets,
    read_optional,
)
from labconsole_v2x.security.scanning import read_certificate_octets, scan_certificate
from labconsole_v2x.security.structures import Certificate

SEQUENCES = 256
"""A ctlSequence has one octet: 0 follows 255."""
_VERSION = b"\x01\x01"
"""Of a list: an integer without bounds, here."""
_U32 = struct.Struct(">I")
_BOOLEANS = {0: False, 0xFF: True}


@dataclass(frozen=True, slots=True)
class RootEntry:
    """A root CA; `link` is its link certificate, as octets."""

    certificate: Certificate
    link: bytes | None = None


@dataclass(frozen=True, slots=True)
class EaEntry:
    """An EA, its URL for AAs and, where another or any is given, its URL for stations."""

    certificate: Certificate
    url_for_authorities: str
    url_for_stations: str | None = None

    @property
    def url(self) -> str:
        """The URL for stations."""
        return self.url_for_authorities if self.url_for_stations is None else self.url_for_stations


@dataclass(frozen=True, slots=True)
class AaEntry:
    """An AA and its URL."""

    certificate: Certificate
    url: str


@dataclass(frozen=True, slots=True)
class CentreEntry:
    """A distribution centre, by its URL, and the HashedId8 of those whose lists it has."""

    url: str
    issuers: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class TlmEntry:
    """A trust list manager, its URL, and its link certificate, as octets."""

    certificate: Certificate
    url: str
    link: bytes | None = None


@dataclass(frozen=True, slots=True)
class DeletedCertificate:
    """A certificate that is not trusted any more."""

    hashed_id8: bytes


@dataclass(frozen=True, slots=True)
class DeletedCentre:
    """A distribution centre that is not in use any more."""

    url: str


Entry = RootEntry | EaEntry | AaEntry | CentreEntry | TlmEntry
Command = Entry | DeletedCertificate | DeletedCentre
_ENTRIES: tuple[type[Entry], ...] = (RootEntry, EaEntry, AaEntry, CentreEntry, TlmEntry)
"""By their choice in CtlEntry."""
_ABSENT: dict[Content, tuple[type[Entry], ...]] = {
    Content.TLM_TRUST_LIST: (EaEntry, AaEntry),
    Content.ROOT_TRUST_LIST: (RootEntry, TlmEntry),
}


@dataclass(frozen=True, slots=True)
class TrustList:
    """`CtlFormat`: a full list, or what has changed since the one with the sequence before (delta)."""

    is_full: bool
    sequence: int
    next_update_s: int
    """ITS time at which it expires."""
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class RevocationList:
    """`ToBeSignedCrl`: the HashedId8 of revoked certificates; times are ITS time in s."""

    this_update_s: int
    next_update_s: int
    entries: tuple[bytes, ...]


def key_of(command: Command) -> bytes | str:
    """What an entry is added, replaced and deleted by: its certificate's HashedId8, or a centre's URL."""
    if isinstance(command, CentreEntry | DeletedCentre):
        return command.url
    return command.hashed_id8 if isinstance(command, DeletedCertificate) else command.certificate.hashed_id8


def changes(old: Iterable[Entry], new: Iterable[Entry]) -> tuple[Command, ...]:
    """The commands of a delta list: deletions of entries that are gone or differ, then new ones."""
    before, after = {key_of(one): one for one in old}, {key_of(one): one for one in new}
    gone = [one for key, one in before.items() if after.get(key) != one]
    deletions: list[Command] = [
        DeletedCentre(one.url) if isinstance(one, CentreEntry) else DeletedCertificate(one.certificate.hashed_id8)
        for one in gone
    ]
    return (*deletions, *(one for key, one in after.items() if before.get(key) != one))


def applied(entries: Iterable[Entry], commands: Iterable[Command]) -> tuple[Entry, ...]:
    """The entries after a list's commands, in their order."""
    state = {key_of(entry): entry for entry in entries}
    for command in commands:
        if isinstance(command, DeletedCertificate | DeletedCentre):
            state.pop(key_of(command), None)
        else:
            state[key_of(command)] = command
    return tuple(state.values())


def encode_trust_list(trust_list: TrustList) -> bytes:
    """`CtlFormat`. Raises `EncodingError`: a URL that is not ASCII."""
    full = b"\xff" if trust_list.is_full else b"\0"
    head = b"\0" + _VERSION + _U32.pack(trust_list.next_update_s) + full + bytes((trust_list.sequence,))
    return head + encode_list(trust_list.commands, _encode_command)


def read_trust_list(octets: bytes, content: Content) -> TrustList:
    """`ToBeSignedTlmCtl` or `ToBeSignedRcaCtl`. Raises `MalformedDataError`: also for entries of the other one."""
    trust_list = read_whole(octets, _trust_list)
    for command in trust_list.commands:
        if isinstance(command, _ABSENT[content]):
            malformed(f"{type(command).__name__} in a list of kind {content}", 0)
        if trust_list.is_full and isinstance(command, DeletedCertificate | DeletedCentre):
            malformed("A deletion in a full list", 0)
    return trust_list


def encode_revocation_list(revocation_list: RevocationList) -> bytes:
    """`ToBeSignedCrl`."""
    times = _U32.pack(revocation_list.this_update_s) + _U32.pack(revocation_list.next_update_s)
    return b"\0" + _VERSION + times + encode_list(revocation_list.entries, bytes)


def read_revocation_list(octets: bytes) -> RevocationList:
    """`ToBeSignedCrl`. Raises `MalformedDataError`."""
    return read_whole(octets, _revocation_list)


def _encode_url(url: str) -> bytes:
    if not url.isascii():
        raise EncodingError(f"{url!r} is not ASCII. Choose another URL.")
    return encode_octets(url.encode())


def _encode_command(command: Command) -> bytes:
    match command:
        case DeletedCertificate(hashed_id8):
            return b"\x81\x80" + hashed_id8
        case DeletedCentre(url):
            return b"\x81\x81" + _encode_url(url)
    return bytes((0x80, 0x80 | _ENTRIES.index(type(command)))) + _encode_entry(command)


def _encode_entry(entry: Entry) -> bytes:
    match entry:
        case RootEntry(certificate, link):
            return _optional(link) + certificate.octets + (link or b"")
        case TlmEntry(certificate, url, link):
            return _optional(link) + certificate.octets + (link or b"") + _encode_url(url)
        case EaEntry(certificate, url, station_url):
            further = b"" if station_url is None else _encode_url(station_url)
            return _optional(station_url) + certificate.octets + _encode_url(url) + further
        case AaEntry(certificate, url):
            return certificate.octets + _encode_url(url)
    return _encode_url(entry.url) + encode_list(entry.issuers, bytes)


def _optional(part: object) -> bytes:
    return b"\0" if part is None else b"\x80"


def _trust_list(octets: bytes, at: int) -> tuple[TrustList, int]:
    preamble, at = _head(octets, at)
    next_update_s, at = _time(octets, at)
    if octets[at] not in _BOOLEANS:
        malformed("A boolean of another value", at)
    full, sequence, at = _BOOLEANS[octets[at]], octets[at + 1], at + 2
    commands, at = read_list(octets, at, _command)
    return TrustList(full, sequence, next_update_s, commands), skip_extensions(octets, at, preamble)


def _revocation_list(octets: bytes, at: int) -> tuple[RevocationList, int]:
    preamble, at = _head(octets, at)
    this_update_s, at = _time(octets, at)
    next_update_s, at = _time(octets, at)
    entries, at = read_list(octets, at, read_fixed(8))
    return RevocationList(this_update_s, next_update_s, entries), skip_extensions(octets, at, preamble)


def _head(octets: bytes, at: int) -> tuple[int, int]:
    """The preamble, and the version, which is checked."""
    preamble = read_optional(octets, at) << 7
    if octets[at + 1 : at + 3] != _VERSION:
        malformed("A list of another version", at + 1)
    return preamble, at + 3


def _time(octets: bytes, at: int) -> tuple[int, int]:
    return _U32.unpack_from(octets, at)[0], at + 4


def _command(octets: bytes, at: int) -> tuple[Command, int]:
    deletes = read_choice(octets[at], 2, "Command", at)
    kind = read_choice(octets[at + 1], 2 if deletes else len(_ENTRIES), "Entry", at + 1)
    at += 2
    if not deletes:
        return _entry(_ENTRIES[kind], octets, at)
    if kind == 0:
        return DeletedCertificate(octets[at : at + 8]), at + 8
    url, at = _url(octets, at)
    return DeletedCentre(url), at


def _entry(kind: type[Entry], octets: bytes, at: int) -> tuple[Entry, int]:
    if kind is CentreEntry:
        url, at = _url(octets, at)
        issuers, at = read_list(octets, at, read_fixed(8))
        return CentreEntry(url, issuers), at
    more = False
    if kind is not AaEntry:
        more, at = read_optional(octets, at), at + 1
    certificate_octets, at = read_certificate_octets(octets, at)
    certificate = scan_certificate(certificate_octets)
    if kind is AaEntry:
        url, at = _url(octets, at)
        return AaEntry(certificate, url), at
    if kind is EaEntry:
        url, at = _url(octets, at)
        station_url, at = _url(octets, at) if more else (None, at)
        return EaEntry(certificate, url, station_url), at
    link, at = read_certificate_octets(octets, at) if more else (None, at)
    if kind is RootEntry:
        return RootEntry(certificate, link), at
    url, at = _url(octets, at)
    return TlmEntry(certificate, url, link), at


def _url(octets: bytes, at: int) -> tuple[str, int]:
    url, end = read_octets(octets, at)
    return url.decode("ascii"), end
