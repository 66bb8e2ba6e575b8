"""The parameters of the trial of use cases."""

from __future__ import annotations

from typing import Annotated

from pydantic import field_validator

from labconsole.model.parameters import Parameters, parameter
from labconsole.operations.configured_tokens import token_name
from labconsole.security.token.configuration import LAB
from labconsole_v2x.choices import BACKENDS
from labconsole_v2x.security.backends import Backend
from labconsole_v2x.use_cases.catalogue import CODES

ALL = "all"


class UseCaseParameters(Parameters):
    """Which use cases are tested, and with which keys (`preserve-d3.2.txt`, section 2.3)."""

    backend: Backend = parameter(
        "Backend",
        "What signs and verifies for stations; the authorities' keys are in software",
        default=Backend.OPENSSL,
        labels=BACKENDS,
    )
    token: Annotated[str, token_name(shown_if={"backend": "token"})] = LAB
    cases: str = parameter(
        "Use cases",
        "Codes such as F-SIG-01, A-SIG-04, with commas between them, or all",
        default=ALL,
        min_length=1,
        max_length=1000,
    )
    rate: float = parameter(
        "High rate",
        "CAMs a second to the receiver of F-SIG-03 from 15 stations, and at most to that of A-SIG-04 from attackers; "
        "the source sends 1,500 at most",
        default=1500.0,
        ge=100,
        le=10_000,
        unit="msg/s",
    )

    @field_validator("cases")
    @classmethod
    def _are_known(cls, cases: str) -> str:
        codes = [code.strip().upper() for code in cases.split(",") if code.strip()]
        if codes == [ALL.upper()]:
            return ALL
        if unknown := [code for code in codes if code not in CODES]:
            raise ValueError(f"{', '.join(unknown)} is not a use case: write codes such as F-SIG-01, or all")
        if not codes:
            raise ValueError("write codes such as F-SIG-01 with commas between them, or all")
        return ", ".join(dict.fromkeys(codes))

    @property
    def selected(self) -> tuple[str, ...]:
        """The codes to be tested, in their order."""
        chosen = CODES if self.cases == ALL else self.cases.split(", ")
        return tuple(code for code in CODES if code in chosen)
