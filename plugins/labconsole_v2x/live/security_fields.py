"""The parameters of stations' security in the live trial: tickets, their changes, and where they sign and verify."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ValidationInfo, field_validator

from labconsole.model.parameters import Parameters, parameter
from labconsole.operations.configured_tokens import token_name
from labconsole.security.token.configuration import LAB
from labconsole_v2x.choices import (
    BACKENDS,
    CHANGES,
    CHANGING,
    CURVE_TITLES,
    INCLUSIONS,
    ChangeChoice,
    CurveChoice,
    InclusionChoice,
)
from labconsole_v2x.security.backends import Backend
from labconsole_v2x.stations.sending import SecurityMode

MOST_TICKETS = 10_000
"""Of all instances: a ticket takes 0.3 ms to create and to issue."""
VERIFIED = {"security": "full"}
_SECURED = {"security": ["full", "signed", "header"]}
_SIGNED = {"security": ["full", "signed"]}


def change_interval(*, default: float) -> Any:
    """The field of the interval of identity changes."""
    return parameter(
        "Interval of changes",
        "Time between two changes of an instance; not all at once, each is up to a fifth shorter or longer",
        default=default,
        ge=1,
        le=86_400,
        unit="s",
        group="Pseudonyms",
        shown_if={**_SECURED, "change": [one.value for one in CHANGING]},
    )


class SecurityFields(Parameters):
    """Security of each CAM; a model that has these fields has `senders` and `instances`, too."""

    security: SecurityMode = parameter(
        "Configuration",
        "Security of each CAM: the source's four configurations",
        default=SecurityMode.FULL,
        group="Security",
        labels={
            "full": "Full security: signed and verified",
            "signed": "Signed, not verified (Fig. 4.4)",
            "header": "Header, neither signed nor verified (Fig. 4.3)",
            "none": "No security header",
        },
    )
    inclusion: InclusionChoice = parameter(
        "Certificate in CAMs",
        "When a CAM carries the whole ticket instead of its digest; never: the receiver knows all tickets before",
        default=InclusionChoice.ETSI,
        group="Security",
        labels=INCLUSIONS,
        shown_if=_SECURED,
    )
    curve: CurveChoice = parameter(
        "Tickets' curve",
        "Curve of the stations' keys; P-256 is what tickets have on the road",
        default=CurveChoice.P256,
        group="Security",
        labels=CURVE_TITLES,
        shown_if=_SECURED,
    )
    authority_curve: CurveChoice = parameter(
        "AA's curve",
        "Curve of the authorization authority's key",
        default=CurveChoice.P256,
        group="Security",
        labels=CURVE_TITLES,
        shown_if=_SECURED,
    )
    root_curve: CurveChoice = parameter(
        "Root CA's curve",
        "Curve of the root CA's key; the hash goes with it, so that chains can mix SHA-256 and SHA-384",
        default=CurveChoice.P256,
        group="Security",
        labels=CURVE_TITLES,
        shown_if=_SECURED,
    )
    compressed_r: bool = parameter(
        "R as compressed point",
        "Signatures have the point R, as on the road, and not only its x: computing it triples the time to sign",
        default=False,
        group="Security",
        shown_if={**_SIGNED, "signing": "openssl"},
    )
    change: ChangeChoice = parameter(
        "Identity changes",
        "When a station takes another ticket, and with it other addresses, station ID and path history",
        default=ChangeChoice.NONE,
        group="Pseudonyms",
        labels=CHANGES,
        shown_if=_SECURED,
    )
    change_interval: float = change_interval(default=60.0)
    tickets: int = parameter(
        "Tickets",
        "Authorization tickets of each instance, issued before the run; fresh ones are used before used ones",
        default=1,
        ge=1,
        le=100,
        group="Pseudonyms",
        shown_if=_SECURED,
    )
    signing: Backend = parameter(
        "Signed by",
        "Where stations sign: software, or a token in the place of the source's ASIC",
        default=Backend.OPENSSL,
        group="Backends",
        labels={key: label for key, label in BACKENDS.items() if key != Backend.AWS_LC.value},
        choices=(Backend.OPENSSL.value, Backend.TOKEN.value),
        shown_if=_SIGNED,
    )
    verification: Backend = parameter(
        "Verified by",
        "Where the receiver verifies; AWS-LC is faster for P-256, other curves are verified by OpenSSL then",
        default=Backend.OPENSSL,
        group="Backends",
        labels=BACKENDS,
        shown_if=VERIFIED,
    )
    token: Annotated[str, token_name(group="Backends", shown_if=_SIGNED)] = LAB

    # What does not go together is a fault of the field that comes last, so that a form can show it there.

    @field_validator("signing")
    @classmethod
    def _check_signing(cls, signing: Backend) -> Backend:
        if signing is Backend.AWS_LC:
            raise ValueError("AWS-LC is a backend for verification only: set `signing` to openssl or token")
        return signing

    @field_validator("tickets")
    @classmethod
    def _check_tickets(cls, tickets: int, info: ValidationInfo) -> int:
        if info.data.get("security") is SecurityMode.NONE:
            return tickets
        if tickets < 2 and info.data.get("change", ChangeChoice.NONE) is not ChangeChoice.NONE:
            raise ValueError("a station with one ticket cannot change its identity: give each 2 or more")
        everyone = info.data.get("senders", 1) * info.data.get("instances", 1) * tickets
        if everyone > MOST_TICKETS and tickets > 1:
            raise ValueError(f"these stations would have {everyone:,} tickets: give them {MOST_TICKETS:,} at most")
        return tickets
