"""The tree of authorities as plain records: States, their roots, intermediates, and the certificates below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from labconsole.security.certificate_status import StatusKind
from labconsole.security.pki.records import CertificateRecord, Origin, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import AUTHORITIES, TEXTS
from labconsole.security.x509.fingerprints import grouped
from labconsole.security.x509.key_types import TITLES, type_of
from labconsole.security.x509.names import short_name
from labconsole_certificates.panel.labels import days_left
from labconsole_certificates.panel.tab import DatabaseReading

STATUS_LABELS = {
    StatusKind.VALID: "valid",
    StatusKind.EXPIRING: "expiring",
    StatusKind.EXPIRED: "expired",
    StatusKind.NOT_YET_VALID: "not yet valid",
    StatusKind.REVOKED: "revoked",
    StatusKind.UNTRUSTED: "untrusted",
}
_COUNTED_STATUSES = (
    StatusKind.EXPIRING,
    StatusKind.UNTRUSTED,
    StatusKind.EXPIRED,
    StatusKind.REVOKED,
    StatusKind.NOT_YET_VALID,
)
_GROUP = 4
_SHORT = 2
NO_STATE = "State not known"


@dataclass(frozen=True)
class Node:
    """One line of the tree: a State, or a certificate below its issuer."""

    key: str
    """Identifier: `state:3`, `certificate:17`."""
    title: str
    holder: str
    """Name of the certified State, if it differs from the line above."""
    purpose: str
    status_text: str
    status: StatusKind | None
    cause: str
    until: datetime | None
    key_type: str
    fingerprint: str
    """SHA-256 in groups; empty for a State."""
    state: State | None
    record: CertificateRecord | None
    children: tuple[Node, ...]
    haystack: str
    """Text for the filter, casefolded."""
    local: bool
    """Whether a private key of it is stored here."""

    def fits(self, words: Sequence[str]) -> bool:
        """Whether it contains all words (casefolded): the `a` of "State A" only at the beginning of a word, and
        four digits or more in the fingerprint too."""
        digits = self.fingerprint.replace(" ", "").lower()
        return all(_label(self.haystack, word) or (len(word) >= _GROUP and word in digits) for word in words)


def nodes_of(reading: DatabaseReading, *, removed: bool = False) -> tuple[Node, ...]:
    """The tree, States by name; with removed certificates if `removed`. Parses each certificate once."""
    return _Builder(reading, removed).nodes()


class _Builder:
    def __init__(self, reading: DatabaseReading, removed: bool) -> None:
        self._snapshot = reading.snapshot
        self._statuses = reading.statuses
        self._at = reading.at
        self._records = [record for record in reading.snapshot.certificates if removed or record.removed is None]
        self._identities = _identity_names(reading.snapshot)
        self._below: dict[int, list[CertificateRecord]] = {}
        """Certificates by the id of their issuer."""
        self._top: dict[int | None, list[CertificateRecord]] = {}
        """Roots, self-signed certificates and those of unknown issuers by State."""

    def nodes(self) -> tuple[Node, ...]:
        shown = {record.id for record in self._records}
        above = {record.id: self._issuer(record, shown) for record in self._records}
        for record in self._records:
            issuer = above[record.id]
            if issuer is None or _is_circular(record.id, above):
                self._top.setdefault(record.state, []).append(record)
            else:
                self._below.setdefault(issuer, []).append(record)
        states = sorted(self._snapshot.states, key=lambda state: (not state.local, state.name.casefold()))
        found = [self._state_node(state) for state in states]
        if None in self._top:
            found.append(self._group(None, NO_STATE, "", frozenset()))
        return tuple(found)

    def _issuer(self, record: CertificateRecord, shown: Container[int]) -> int | None:
        """The certificate above `record` in the tree: of several issuers a self-signed one, else the newest."""
        issuers = [found for found in self._snapshot.issuers_of(record) if found.id in shown and found.id != record.id]
        own = [found for found in issuers if found.self_signed]
        return next((found.id for found in own or issuers), None)

    def _state_node(self, state: State) -> Node:
        where = "Its keys lie here" if state.local else "Another console's: what it sent is known"
        return self._group(state, state.name, where, frozenset())

    def _group(self, state: State | None, title: str, where: str, above: frozenset[int]) -> Node:
        number = state.id if state is not None else None
        children = self._children(self._top.get(number, ()), number, above)
        counts = Counter(_statuses(children))
        labels = [f"{counts[kind]} {STATUS_LABELS[kind]}" for kind in _COUNTED_STATUSES if counts[kind]]
        return Node(
            key=f"state:{number}",
            title=title,
            holder="",
            purpose="",
            status_text=", ".join(labels),
            status=None,
            cause=where,
            until=None,
            key_type="",
            fingerprint="",
            state=state,
            record=None,
            children=children,
            haystack=" ".join((title, state.domain if state else "")).casefold(),
            local=state is not None and state.local,
        )

    def _children(
        self, records: Iterable[CertificateRecord], state: int | None, above: frozenset[int]
    ) -> tuple[Node, ...]:
        nodes = [self._node(record, state, above) for record in records if record.id not in above]
        return tuple(sorted(nodes, key=lambda node: (not _is_authority(node), node.holder.casefold(), node.title)))

    def _node(self, record: CertificateRecord, state_above: int | None, above: frozenset[int]) -> Node:
        certificate = record.certificate
        status = self._statuses.get(record.id)
        holder = self._snapshot.state_by_id.get(record.state) if record.state is not None else None
        name, purpose, identity = short_name(certificate), _purpose(record), self._identities.get(record.id, "")
        key_type = type_of(certificate.public_key())
        type_title = TITLES[key_type] if key_type is not None else ""
        word = "removed" if record.removed is not None else STATUS_LABELS[status.kind] if status is not None else ""
        said = (name, holder.name if holder else "", purpose, word, type_title)
        return Node(
            key=f"certificate:{record.id}",
            title=f"{name} ({identity})" if identity and identity != name else name,
            holder=holder.name if holder is not None and holder.id != state_above else "",
            purpose=purpose,
            status_text=self._status_text(word, record),
            status=None if record.removed is not None else status.kind if status is not None else None,
            cause=status.cause if status is not None else "",
            until=certificate.not_valid_after_utc,
            key_type=type_title,
            fingerprint=grouped(record.sha256),
            state=holder,
            record=record,
            children=self._children(self._below.get(record.id, ()), record.state, above | {record.id}),
            haystack=" ".join((*said, identity)).casefold(),
            local=record.key is not None,
        )

    def _status_text(self, word: str, record: CertificateRecord) -> str:
        if word != STATUS_LABELS[StatusKind.EXPIRING]:
            return word
        return f"{word} in {days_left(record.certificate.not_valid_after_utc, self._at)} days"


def _label(haystack: str, word: str) -> bool:
    if len(word) > _SHORT:
        return word in haystack
    return any(not haystack[place - 1 : place].isalnum() for place in _places(haystack, word))


def _places(haystack: str, word: str) -> Iterable[int]:
    place = haystack.find(word)
    while place >= 0:
        yield place
        place = haystack.find(word, place + 1)


def _is_circular(number: int, above: Mapping[int, int | None]) -> bool:
    """Whether the way up from `number` leads back to it, as with two CAs that certified each other, and it has the
    lowest number of this circle: that one is shown on top."""
    on_the_way: list[int] = []
    up = above.get(number)
    while up is not None and up not in on_the_way:
        if up == number:
            return number < min(on_the_way, default=number + 1)
        on_the_way.append(up)
        up = above.get(up)
    return False


def _is_authority(node: Node) -> bool:
    return node.record is not None and node.record.profile in AUTHORITIES


def _identity_names(snapshot: Snapshot) -> Mapping[int, str]:
    names: dict[int, list[str]] = {}
    for identity in snapshot.identities:
        names.setdefault(identity.certificate, []).append(identity.name)
    return {certificate: ", ".join(found) for certificate, found in names.items()}


def _statuses(nodes: Iterable[Node]) -> Iterable[StatusKind]:
    for node in nodes:
        if node.status is not None:
            yield node.status
        yield from _statuses(node.children)


def _purpose(record: CertificateRecord) -> str:
    if record.origin is Origin.LINK:
        return "Link certificate"
    return TEXTS[record.profile].title if record.profile is not None else ""
