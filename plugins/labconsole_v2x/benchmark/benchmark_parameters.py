"""The parameters of the benchmark."""

from __future__ import annotations

import os
from typing import Annotated

from labconsole.model.parameters import Parameters, parameter
from labconsole.operations.configured_tokens import token_name
from labconsole.security.token.configuration import LAB
from labconsole_v2x.choices import BACKENDS, CURVE_TITLES, CurveChoice
from labconsole_v2x.security.backends import Backend


class BenchmarkParameters(Parameters):
    """A benchmark as in Table 3.2 of `preserve-d3.2.txt`."""

    backend: Backend = parameter(
        "Backend",
        "What signs and verifies; AWS-LC verifies P-256 only, and OpenSSL does the rest",
        default=Backend.OPENSSL,
        group="Backend",
        labels=BACKENDS,
    )
    token: Annotated[str, token_name(group="Backend", shown_if={"backend": "token"})] = LAB
    curve: CurveChoice = parameter(
        "Curve", "Curve of all keys of the chain", default=CurveChoice.P256, group="Backend", labels=CURVE_TITLES
    )
    rounds: int = parameter(
        "Rounds",
        "All measurements in turn, so many times: a ratio is that of one round, and the median of all is shown",
        default=5,
        ge=1,
        le=100,
        group="Measurement",
    )
    seconds: float = parameter(
        "Time per measurement",
        "Each measurement of a round takes so long; it has 10 executions at least, in all rounds together",
        default=0.4,
        ge=0.05,
        le=60,
        unit="s",
        group="Measurement",
    )
    cores: int = parameter(
        "Processes and threads",
        "Of the measurements on several cores; 0: one for each core",
        default=0,
        ge=0,
        le=64,
        group="Measurement",
    )
    openssl: bool = parameter(
        "Compare with openssl speed",
        "Run the program `openssl speed` in each round, one second for each of its figures",
        default=True,
        group="Measurement",
    )

    @property
    def least_executions(self) -> int:
        """Executions of a measurement in each round at least: the source takes the fastest of 10 (section 3.2)."""
        return max(2, -(-10 // self.rounds))

    @property
    def parallel(self) -> int:
        """Processes or threads of the measurements on several cores."""
        return self.cores or os.cpu_count() or 1
