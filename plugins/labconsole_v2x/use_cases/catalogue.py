"""All use cases by their codes, in the order in which they are tested, listed and numbered."""

from __future__ import annotations

from labconsole_v2x.use_cases.attack_catalogue import ATTACKS
from labconsole_v2x.use_cases.functional_catalogue import FUNCTIONAL, FUNCTIONS
from labconsole_v2x.use_cases.use_case import UseCase

USE_CASES: dict[str, UseCase] = {case.code: case for case in (*FUNCTIONS, *FUNCTIONAL, *ATTACKS)}
CODES = tuple(USE_CASES)
"""By the numbers under which evidence is stored: later ones are appended, none is moved."""
