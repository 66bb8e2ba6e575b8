"""Tokens of kryoptic, the second PKCS#11 module of the tests: `python3 installer/bootstrap.py kryoptic` builds it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.initialisation_process import initialise

MODULE = Path(
    os.environ.get("KRYOPTIC_MODULE")
    or Path(__file__).resolve().parents[2] / "build" / "kryoptic" / "libkryoptic_pkcs11.so"
)


def kryoptic_configuration(directory: Path, label: str) -> TokenConfiguration:
    """A token in `directory`, not initialised yet; skips where kryoptic is not built."""
    if not MODULE.is_file():
        pytest.skip(f"kryoptic is not built: python3 installer/bootstrap.py kryoptic makes {MODULE.name}")
    file = directory / "kryoptic.conf"
    file.write_text(f'[[slots]]\nslot = 1\ndbtype = "sqlite"\ndbargs = "{directory / "token.sql"}"\n')
    return TokenConfiguration(module=MODULE, label=label, environment={"KRYOPTIC_CONF": str(file)})


def make_kryoptic_token(directory: Path, label: str, pin: Secret, so_pin: Secret) -> TokenConfiguration:
    """An initialised token; skips where kryoptic is not built."""
    configuration = kryoptic_configuration(directory, label)
    initialise(label, configuration, True, so_pin, pin)
    return configuration
