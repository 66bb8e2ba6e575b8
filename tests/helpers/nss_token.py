"""Tokens of NSS softokn (Debian: libnss3), a PKCS#11 module that has no Brainpool curves and wraps RSA keys only."""

from __future__ import annotations

from pathlib import Path

import pytest

from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.module import load_module
from labconsole.security.token.cryptoki.opening import find_token

LABEL = "NSS Certificate DB"
_PLACES = ("usr/lib/*/libsoftokn3.so", "usr/lib/*/nss/libsoftokn3.so", "opt/homebrew/opt/nss/lib/libsoftokn3.dylib")


def make_nss_token(directory: Path, pin: Secret) -> TokenConfiguration:
    """A token in `directory` whose PIN is set; skips where NSS is not installed."""
    library = next((path for place in _PLACES for path in Path("/").glob(place)), None)
    if library is None:
        pytest.skip("needs NSS softokn (Debian: libnss3)")
    parameters = (
        f"configdir='sql:{directory}' certPrefix='' keyPrefix='' secmod='secmod.db' flags= "
        "updatedir='' updateCertPrefix='' updateKeyPrefix='' updateid='' updateTokenDescription=''"
    )
    made = TokenConfiguration(module=library, label=LABEL, parameters=parameters)
    module = load_module(made)
    try:
        with find_token(module, "nss", made).open(rw=True, so_pin="") as officer:
            officer.init_pin(pin.reveal())
    finally:
        module.finalize()
    return made
