"""The DNS domains that a State claims: names outside them are refused in its certificates.

A State claims its domains once, and the operator confirms them. One without a domain is not restricted, so that
exchanges made before still work. Only DNS names of subjectAltName (RFC 5280, 4.2.1.6) count: what certifies none is
not affected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cryptography import x509

from labconsole.errors import BadInput
from labconsole.security.pki.records import State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.extensions import alternative_names
from labconsole.security.x509.fingerprints import fingerprint
from labconsole.security.x509.names import general_name_as_text, general_name_from_text, shown

_BETWEEN = re.compile(r"[\s,;]+")
LONGEST = 253
"""Characters of all domains of a State together, as in a trust bundle."""


def domains_from_text(text: str) -> str:
    """The domains in `text` (blanks or commas between, any script), one blank between them; empty: none.

    Raises BadInput: one is not a domain, or they are longer than a trust bundle can say.
    """
    parts = list(dict.fromkeys(part.removesuffix(".") for part in _BETWEEN.split(text) if part))
    for part in parts:
        if not isinstance(general_name_from_text(part), x509.DNSName) or part.startswith("*"):
            raise BadInput(f"{shown(part)} is not a DNS domain: give one, as in caas.gov.sg, or none.")
    joined = " ".join(parts).lower()
    if len(joined) > LONGEST:
        raise BadInput(f"The domains of a State have {LONGEST} characters at most: give fewer of them.")
    return joined


def refusal(state: State, names: Iterable[x509.GeneralName]) -> str:
    """Why a certificate of `state` with these names is refused, in one sentence; empty: it is not."""
    claimed = _claimed(state)
    outside = [name for name in _hosts(names) if claimed and not _within(name.value, claimed)]
    if not outside:
        return ""
    listed = ", ".join(map(general_name_as_text, outside))
    return (
        f"{listed} is outside the domain of {state.name} ({_shown_domains(state)}): correct the name, or confirm "
        f"another domain for {state.name} first."
    )


def notice(snapshot: Snapshot, state: State, names: Iterable[x509.GeneralName]) -> str:
    """What to know of names that are accepted because `state` has claimed no domain; empty: there is nothing."""
    hosts = _hosts(names)
    if state.domain or not hosts:
        return ""
    owners = [
        other.name
        for other in snapshot.states
        if other.id != state.id and any(_within(host.value, _claimed(other)) for host in hosts)
    ]
    within = f" It is within the domain of {' and '.join(owners)}." if owners else ""
    listed = ", ".join(map(general_name_as_text, hosts))
    return f"{state.name} has claimed no domain, so that any name is accepted for it: {listed}.{within}"


def path_refusal(snapshot: Snapshot, path: Sequence[x509.Certificate]) -> str:
    """Why the end certificate at the begin of `path` is refused for its names; empty: it is not.

    Its State is that of the path (`state_of_path`).
    """
    state = state_of_path(snapshot, path)
    return "" if state is None else refusal(state, alternative_names(path[0].extensions))


def state_of_path(snapshot: Snapshot, path: Sequence[x509.Certificate]) -> State | None:
    """The State of the end certificate at the begin of `path`: the one that it is known to certify, else that of the
    nearest CA in the path that is known; None where no certificate of the path is known."""
    for certificate in path:
        record = snapshot.certificate_by_sha256.get(fingerprint(certificate))
        if record is not None and record.state is not None:
            return snapshot.state_by_id[record.state]
    return None


def claim_question(snapshot: Snapshot, state: State | None, name: str, domain: str) -> str:
    """What the operator must confirm before the State called `name` has `domain`; empty: nothing.

    `state` is that State, if it is known here: a change is a question, as is a domain of another State.
    """
    if state is not None and state.domain == domain:
        return ""
    parts = []
    if state is not None:
        said = domain.replace(" ", ", ") or "no domain, so that any name would be accepted"
        parts.append(f"{shown(name)} claims {shown(said)}, and had {_shown_domains(state) or 'no domain'} before.")
    wanted = [_a_label(part) for part in domain.split()]
    for other in snapshot.states:
        if (state is None or other.id != state.id) and _overlap(wanted, _claimed(other)):
            parts.append(f"{other.name} has claimed {_shown_domains(other)}: {shown(name)} would share names with it.")
    return " ".join(parts)


def _overlap(some: Sequence[str], others: Sequence[str]) -> bool:
    return any(_within(each, others) for each in some) or any(_within(each, some) for each in others)


def _hosts(names: Iterable[x509.GeneralName]) -> list[x509.DNSName]:
    return [name for name in names if isinstance(name, x509.DNSName)]


def _claimed(state: State) -> list[str]:
    return [_a_label(domain) for domain in state.domain.split()]


def _within(host: str, domains: Sequence[str]) -> bool:
    return any(f".{host.lower()}".endswith(f".{domain}") for domain in domains)


def _a_label(domain: str) -> str:
    """As it is written in certificates; what is not a domain (of an older database) has no names in it."""
    try:
        name = general_name_from_text(domain)
    except BadInput:
        return domain
    return str(name.value).lower() if isinstance(name, x509.DNSName) else domain


def _shown_domains(state: State) -> str:
    return shown(", ".join(state.domain.split()))
