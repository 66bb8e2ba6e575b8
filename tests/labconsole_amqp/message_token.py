"""The two States with a SoftHSM token `office`, in which keys of Alpha sign messages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labconsole.paths import pki_dir
from labconsole.security.pki.records import Origin, TokenKey
from labconsole.security.secrets import Secret
from labconsole.security.token import softhsm
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.lab_token import make_softhsm_token
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.token.named_tokens import save_configuration
from labconsole.security.token.remote_private_key import opened_new_token_key
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.issuing import issue
from tests.labconsole.security.pki.pki_lab import VALID, named
from tests.labconsole_amqp.states import States, copied_states

OFFICE = "office"
PIN = Secret("1234-user")
SIGNERS = {KeyKind.RSA_2048: "rsa-signer", KeyKind.P_256: "ec-signer"}
"""Identities of Alpha by the kind of their key in the token."""
SUCCESSOR = "ec-successor"
OTHER_KEY = "other-key"
"""An identity for which the database names the key of another one."""
_CONFIGURATION = "configuration.json"


def create_office(states_template: Path, folder: Path) -> None:
    """Create token and identities in a folder that tests copy: four processes of the token's module are needed."""
    token = folder / OFFICE
    configuration = make_softhsm_token(token, OFFICE, PIN, Secret("5678-officer"))
    (folder / _CONFIGURATION).write_text(configuration.model_dump_json())
    save_configuration(OFFICE, configuration)
    with copied_states(states_template, folder / "pki") as states:
        for kind, name in SIGNERS.items():
            _add_identity(states, name, kind, name)
        _add_identity(states, SUCCESSOR, KeyKind.P_256, SUCCESSOR)
        _add_identity(states, OTHER_KEY, KeyKind.RSA_2048, SIGNERS[KeyKind.RSA_2048])


def _add_identity(states: States, name: str, kind: KeyKind, label: str) -> None:
    """An identity of Alpha with a new key in the token; `label` is that of the key that the database names."""
    with opened_new_token_key(OFFICE, name, kind, PIN) as key:
        public_key = key.public_key()
    profile = CertificateProfile.MESSAGE_SIGNING
    certificate = issue(states.alpha.issuer, public_key, named(name), (), profile, VALID)
    with states.store.change() as change:
        change.add_key(states.alpha.state.id, name, public_key, TokenKey(OFFICE, label))
        change.name_identity(name, change.add_certificate(certificate, origin=Origin.ISSUED, profile=profile).id)


@contextmanager
def copied_office(template: Path, folder: Path) -> Iterator[States]:
    """The States in the test's home, with a copy of the token in a folder."""
    shutil.copytree(template / OFFICE, folder)
    configuration = TokenConfiguration.model_validate_json((template / _CONFIGURATION).read_text())
    environment = softhsm.environment(softhsm.write_configuration(folder))
    save_configuration(OFFICE, configuration.model_copy(update={"environment": environment}))
    with copied_states(template / "pki", pki_dir()) as states:
        yield states
