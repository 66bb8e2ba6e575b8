"""Who a certificate names: what people type, and what is taken where they type nothing."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography import x509

from labconsole.security.pki.domains import refusal
from labconsole.security.pki.records import State
from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.certificate_profiles import TEXTS, CertificateProfile
from labconsole.security.x509.names import general_name_from_text, name_constraint_from_text, name_from_text, name_of


def subject_of(state: State, profile: CertificateProfile, text: str) -> x509.Name:
    """The subject that `text` says (RFC 4514); empty: `CN=<State> <profile>,O=<State>`. Raises BadInput."""
    if text.strip():
        return name_from_text(text)
    return name_of(("O", state.name), ("CN", f"{state.name} {TEXTS[profile].title}"))


def alternative_names(texts: Sequence[str]) -> tuple[x509.GeneralName, ...]:
    """Subject alternative names (RFC 5280, 4.2.1.6). Raises BadInput."""
    return tuple(general_name_from_text(text) for text in texts)


def server_host(state: State) -> str:
    """The host name that is proposed for the server of `state`, within its domain."""
    return f"swim.{state.domain.split()[0]}" if state.domain else "localhost"


def must_be_within(state: State, names: Sequence[x509.GeneralName]) -> None:
    """Raises BadInput: one of the names is outside the domain of `state`."""
    refused = refusal(state, names)
    if refused:
        raise BadInput(refused)


def constraints(texts: Sequence[str]) -> tuple[x509.GeneralName, ...]:
    """Permitted subtrees of name constraints (RFC 5280, 4.2.1.10). Raises BadInput."""
    return tuple(name_constraint_from_text(text) for text in texts)
