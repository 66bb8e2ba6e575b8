"""A use case of `preserve-d3.2.txt` (Tables 2.1 to 2.17), with what it lacks there: steps and pass criterion."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from labconsole_v2x.use_cases.expectations import Expectation


class ReferencePoint(StrEnum):
    """Between whom a case tests (`preserve-d3.2.txt`, Fig. 2.4)."""

    FUNCTIONS = "Underlying functions"
    RP1 = "RP1: station and station"
    RP2 = "RP2: station and PCA (AA)"
    RP3 = "RP3: station and LTCA (EA)"
    RP4 = "RP4: station and ITS-S centre"
    RP5 = "RP5: CA and CA"
    NONE = "In no table of a reference point"


@dataclass(frozen=True)
class UseCase:
    """A case: `steps` are what it does, `criteria` what must be found in its evidence.

    `capability` is what an attacker can do. `interpretation` is how this console reads a code that the source does not
    explain. `test_purposes` are those of TS 103 096-2 (`TC_SEC_`) and TS 103 525-2 (`SECPKI_`) that come closest to it:
    a correspondence, none of them is run.
    """

    code: str
    title: str
    reference_point: ReferencePoint
    mandatory: bool
    steps: tuple[str, ...]
    criteria: tuple[Expectation, ...]
    capability: str = ""
    interpretation: str = ""
    test_purposes: tuple[str, ...] = ()

    @property
    def counted(self) -> bool:
        """Whether it is one of the 36 codes: the underlying functions are a group of their own."""
        return self.reference_point is not ReferencePoint.FUNCTIONS
