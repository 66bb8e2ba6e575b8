"""Tokens of SoftHSM2 that this process initialises itself: 8 ms, where the process of the product takes 0.5 s."""

from __future__ import annotations

from pathlib import Path

from labconsole.security.secrets import Secret
from labconsole.security.token import softhsm
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.initialisation_process import initialise


def create_softhsm_token(directory: Path, label: str, pin: Secret, so_pin: Secret) -> TokenConfiguration:
    """As `make_softhsm_token`, where this process has no module loaded: an initialised token in `directory`."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    library = softhsm.library()
    assert library is not None, "the tests need SoftHSM2 (Debian: softhsm2)"
    environment = softhsm.environment(softhsm.write_configuration(directory))
    configuration = TokenConfiguration(module=library, label=label, environment=environment)
    initialise(label, configuration, True, so_pin, pin)
    return configuration
