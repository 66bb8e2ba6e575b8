"""Real tokens for the tests: one on SoftHSM2, one in NSS softokn where it is installed; each is closed after its test.

A process loads a module once at a time, hence `token` and `nss` are of one test, and their directories of one file.
"""

from __future__ import annotations

from collections.abc import Iterator

import pkcs11
import pytest

from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import Token, open_token
from tests.helpers.kryoptic_token import make_kryoptic_token
from tests.helpers.nss_token import make_nss_token
from tests.helpers.softhsm_token import create_softhsm_token

PIN = Secret("1234-user")
SO_PIN = Secret("5678-officer")
LABEL = "test"


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> TokenConfiguration:
    """The configuration of a SoftHSM2 token labelled `test`; it names no source of the PIN."""
    return create_softhsm_token(tmp_path_factory.mktemp("softhsm"), LABEL, PIN, SO_PIN)


@pytest.fixture(scope="module", params=["softhsm", "kryoptic"])
def each_configuration(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TokenConfiguration:
    """A token labelled `test` of each module in turn; a file takes it as its `configuration`. Skips kryoptic's where it
    is not built."""
    if request.param == "kryoptic":
        return make_kryoptic_token(tmp_path_factory.mktemp("kryoptic"), LABEL, PIN, SO_PIN)
    return create_softhsm_token(tmp_path_factory.mktemp("softhsm"), LABEL, PIN, SO_PIN)


@pytest.fixture(scope="session")
def pin() -> Secret:
    """The user's PIN of every token here."""
    return PIN


@pytest.fixture(scope="session")
def so_pin() -> Secret:
    """The security officer's PIN of the SoftHSM2 token."""
    return SO_PIN


@pytest.fixture
def token(configuration: TokenConfiguration) -> Iterator[Token]:
    """The SoftHSM2 token, open."""
    with open_token("test", configuration, PIN) as opened:
        yield opened


@pytest.fixture
def session(token: Token) -> pkcs11.Session:
    """A session with the SoftHSM2 token, logged in."""
    return token.session()


@pytest.fixture(scope="module")
def nss_configuration(tmp_path_factory: pytest.TempPathFactory) -> TokenConfiguration:
    """The configuration of a token of NSS softokn, whose PIN is set."""
    return make_nss_token(tmp_path_factory.mktemp("nss"), PIN)


@pytest.fixture
def nss(nss_configuration: TokenConfiguration) -> Iterator[Token]:
    """The token of NSS softokn, open; skips where there is none."""
    with open_token("nss", nss_configuration, PIN) as opened:
        yield opened
