"""States: list them, add one, and set the DNS domains that it claims."""

from __future__ import annotations

from typing import Any, ClassVar

from labconsole.errors import UserError
from labconsole.model.operation import Confirmation, OperationContext, Result, TextTable
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.security.pki.change import Change
from labconsole.security.pki.domains import claim_question, domains_from_text
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import State
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt
from labconsole.security.x509.fingerprints import short_fingerprint
from labconsole_certificates.operations.parameter_fields import NoParameters, StateName
from labconsole_certificates.operations.pki_operation import PkiOperation, PkiReport
from labconsole_certificates.operations.record_lookup import state_named

_LONGEST_NAME = 40
"""Characters: with the suffix in subjects at most 64 (RFC 5280, A.1)."""


def add_state(store: PkiStore, name: str, domain: str = "", *, local: bool = True) -> State:
    """Add a State; `domain`: one or more, in any script. Raises UserError: name in use or empty, domain invalid."""
    domains = domains_from_text(domain)
    with store.change() as change:
        return change.add_state(_checked(name), domains, local=local)


def found_or_added(change: Change, name: str) -> State:
    """The State called `name`; a new one of another console if there is none. Raises UserError: the name is bad."""
    known = next((state for state in change.states() if state.name in (name, " ".join(name.split()))), None)
    return known or change.add_state(_checked(name), local=False)


def _checked(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise UserError(f"A State needs a name of 1 to {_LONGEST_NAME} characters that can be shown: choose another.")
    return name


def claim_domain(store: PkiStore, state: State, domain: str) -> State:
    """Let `state` have these domains, which the operator has confirmed. Raises UserError: one is not a domain.

    Where it has them already nothing is changed, and nothing was asked.
    """
    domains = domains_from_text(domain)
    if domains == state.domain:
        return state
    with store.change() as change:
        return change.claim_domain(state.id, domains)


class ListStates(PkiReport[NoParameters]):
    """Lists the States."""

    name: ClassVar[str] = "certificates.states"
    title: ClassVar[str] = "States"
    description: ClassVar[str] = "Lists the States of this console, with their domains and roots."
    parameters: ClassVar[type[Parameters]] = NoParameters

    def read(self, parameters: NoParameters, reader: PkiReader) -> Result:
        snapshot = reader.snapshot()
        found: list[dict[str, Any]] = []
        rows = []
        for state in snapshot.states:
            roots = [root.sha256 for root in snapshot.roots_of(state.id)]
            keys = "here" if state.local else "elsewhere"
            rows.append((state.name, str(state.domain) or "any", keys, ", ".join(map(short_fingerprint, roots))))
            found.append({"state": state.name, "domain": str(state.domain), "local": state.local, "roots": roots})
        return Result((TextTable(("State", "Domain", "Keys", "Root"), tuple(rows)),), {"states": found})


class AddStateParameters(Parameters):
    """A State to add."""

    state: str = parameter("Name", "Name of the State", min_length=1, positional=True)
    domain: str = parameter(
        "Domains",
        "DNS domains of its hosts, in any script; empty: any name",
        default="",
        metavar="DOMAIN",
        empty="Any name is accepted",
    )
    remote: bool = parameter("Of another console", "A State of another console: its keys are not here", default=False)


class AddState(PkiOperation[AddStateParameters]):
    """Adds a State."""

    name: ClassVar[str] = "certificates.add-state"
    title: ClassVar[str] = "Add a State"
    description: ClassVar[str] = "Adds a State of this console, or one whose keys another console has."
    parameters: ClassVar[type[Parameters]] = AddStateParameters

    def work(
        self, parameters: AddStateParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        state = add_state(store, parameters.state, parameters.domain, local=not parameters.remote)
        text = f"{state.name} was added."
        if not state.domain:
            text += f'\nIt claims no domain, so any name is accepted for it: labconsole pki domain "{state.name}" ...'
        return Result((text,), {"state": state.name, "domain": str(state.domain)})


class ClaimDomainParameters(Parameters):
    """The domains of a State."""

    state: StateName
    domain: tuple[str, ...] = parameter(
        "Domains", "DNS domains of its hosts; none: any name", default=(), positional=True, empty="Any name"
    )
    confirmed: bool = parameter(
        "Confirmed", "The State has confirmed it: ask no question", default=False, terminal_only=True
    )


class ClaimDomain(PkiOperation[ClaimDomainParameters]):
    """Lets a State claim other domains."""

    name: ClassVar[str] = "certificates.domain"
    title: ClassVar[str] = "Claim domains"
    description: ClassVar[str] = "Sets the DNS domains within which certificates of a State are accepted."
    parameters: ClassVar[type[Parameters]] = ClaimDomainParameters

    def confirmation(self, parameters: ClaimDomainParameters) -> Confirmation | None:
        with PkiReader.open() as reader:
            snapshot = reader.snapshot()
        state = state_named(snapshot, parameters.state)
        question = claim_question(snapshot, state, state.name, domains_from_text(" ".join(parameters.domain)))
        return Confirmation("yes", question, "--confirmed") if question and not parameters.confirmed else None

    def work(
        self, parameters: ClaimDomainParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        state = state_named(store.snapshot(), parameters.state)
        domains = claim_domain(store, state, " ".join(parameters.domain)).domain
        text = f"{state.name}: {domains or 'no domain, so that any name is accepted for it'}"
        return Result((text,), {"state": state.name, "domain": str(domains)})
